"""A general model behind a chat endpoint, on the best rung that it passed; each rollout can step down from there."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any, Final, Literal

from agent.errors import ContextFull, PolicyError, RequestRefused
from agent.policies.base import Chunk, Sampling
from agent.policies.ladder import plain
from agent.policies.ladder.moves import AnswerMove, Move, SearchMove, spelled
from agent.policies.ladder.prompts import RUNG_PROMPTS, SearchingRung, is_repeat
from agent.policies.ladder.reading import move_in
from agent.policies.ladder.replies import Asker, ModelReply, NoMove
from agent.policies.ladder.state import State
from agent.policies.openai_chat import CHARS_A_TOKEN
from agent.protocols.base import TextProtocol
from agent.sanitize.text import shortened
from agent.trace import Author, RungUsed, Segment

Rung = Literal["tools", "json", "words", "plain"]
RUNGS: Final[tuple[Rung, ...]] = ("tools", "json", "words", "plain")
_MOVE_TOKENS: Final = 700
"""Of one turn on a rung where the model searches: a move is short."""
_PASSAGE: Final = "[{number}] {head}{text}"


class LadderPolicy:
    """Opens contexts whose turns are a model's moves, written in the protocol."""

    continues = False
    instructed = True

    def __init__(
        self,
        asker: Asker,
        *,
        rungs: Sequence[Rung] = RUNGS,
        why: str = "",
        context_tokens: int,
        special_tokens: tuple[str, ...] = (),
    ) -> None:
        """Take note of a model; nothing is sent yet.

        Args:
            asker: of the model.
            rungs: those that may be used, best first; the last one is `plain`.
            why: the first one was chosen.
            context_tokens: the longest context that the model takes.
            special_tokens: of the model's tokenizer, where that is at hand.
        """
        self.name = asker.endpoint.model
        self.asker = asker
        self.rungs: tuple[Rung, ...] = tuple(rungs)
        self.why = why
        self.context_tokens = context_tokens
        self.special_tokens = special_tokens

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> "LadderContext":
        state = State(question, tuple(history), date)
        while state.history and _estimated(self.rungs[0], state) > self.context_tokens // 2:
            state = replace(state, history=state.history[1:])  # the oldest turn is forgotten first
        return LadderContext(self, protocol, state)

    async def aclose(self) -> None:
        await self.asker.endpoint.aclose()


class LadderContext:
    """One rollout. What was said is kept in the form of no rung; each request is made from it again."""

    ended_turn = False

    def __init__(self, policy: LadderPolicy, protocol: TextProtocol, state: State) -> None:
        self.protocol = adapted(protocol)
        """As the loop shows passages to this model."""
        self.rungs: list[RungUsed] = [RungUsed(rung=policy.rungs[0], why=policy.why)]
        """Those that were used until now, with the reason for each."""
        self._policy = policy
        self._left = list(policy.rungs)
        self._state = state
        self.segments: list[Segment] = [Segment(by="prompt", text=state.question)]
        self.tokens = _estimated(policy.rungs[0], state)
        """What it read, estimated with its instructions and earlier turns, and what the server says that it sampled,
        also in replies that were of no use.
        """
        self._sampled = 0

    def append(self, text: str, *, by: Author) -> Segment:
        if by == "environment":
            self._state = self._state.finding(self._inside(text))
        elif by == "loop":
            self._state = replace(self._state, must_answer=True)
        self.segments.append(Segment(by=by, text=text))
        self.tokens += self.count(text)
        return self.segments[-1]

    def fork(self) -> "LadderContext":
        copied = copy(self)
        copied.segments, copied.rungs, copied._left = list(self.segments), list(self.rungs), list(self._left)
        return copied

    def count(self, text: str) -> int:
        return _tokens(text)

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        """Give the next move as one chunk; see `agent.policies.base.Context`.

        Raises:
            PolicyError: the server failed, or the model said nothing on any rung. ContextFull where there is no room.
        """
        room = min(max_tokens, self._policy.context_tokens - self.tokens)
        if room <= 0:
            raise ContextFull(f"the context of {self._policy.context_tokens} tokens is full")
        self._sampled = 0
        try:
            move, by = await self._move(sampling, room)
        finally:
            self.tokens += self._sampled
        if isinstance(move, SearchMove):
            self._state = self._state.searching(move)
        text = spelled(move, self.protocol)
        self.segments.append(Segment(by=by, text=text))
        yield Chunk(text)

    async def _move(self, sampling: Sampling, room: int) -> tuple[Move, Author]:
        while (rung := self._left[0]) != "plain":
            try:
                return await self._own_move(rung, sampling, room), "policy"
            except NoMove as why:
                self._step_down(str(why))
            except RequestRefused as error:
                self._step_down(shortened(str(error), 200))
        if not self._state.rounds and not self._state.must_answer:
            return plain.plan(self._state.question, most=self.protocol.max_queries), "loop"
        return await self._plain(sampling, room), "policy"

    async def _own_move(self, rung: SearchingRung, sampling: Sampling, room: int) -> Move:
        """The model's own move.

        Raises:
            NoMove: it makes none, or one that the floor does better.
        """
        prompt = RUNG_PROMPTS[rung]
        messages, members = prompt.request(self._state)
        reply = await self._ask(messages, sampling, _MOVE_TOKENS, members, room=room)
        try:
            move = _read(reply)
        except NoMove as why:
            repaired = prompt.repaired(messages, reply.text[:2000], str(why))
            if repaired is None:
                raise
            move = _read(await self._ask(repaired, sampling, _MOVE_TOKENS, members, room=room))
        return self._allowed(move)

    def _allowed(self, move: Move) -> Move:
        if isinstance(move, AnswerMove) and not self._state.rounds and not self._state.must_answer:
            raise NoMove("it answered without searching")
        if isinstance(move, SearchMove):
            if self._state.must_answer:
                raise NoMove("it searched where it had to answer")
            if is_repeat(move, self._state):
                raise NoMove("it searched for the same again")
            return SearchMove(move.queries[: self.protocol.max_queries])
        return move

    async def _plain(self, sampling: Sampling, room: int) -> AnswerMove:
        why = "it said nothing"
        for attempt in range(2):
            messages, short = plain.request(self._state, example=not attempt)
            most = plain.SHORT_TOKENS if short and not attempt else _MOVE_TOKENS
            reply = await self._ask(messages, sampling, most, {}, room=room)
            if reply.is_broken:
                why = "its turn broke off"
            elif move := _written(reply) or plain.answer_of(reply.text, self._state, short=short):
                if attempt or not plain.is_copied(move.text, self._state):
                    return move
            elif reply.refusal:
                why = f"it refused: {reply.refusal[:200]}"
            elif reply.reasoning:
                why = "it reasoned and said nothing"
        raise PolicyError(f"{self._policy.name} gave no answer: {why}; ask another model, or give it more room")

    async def _ask(
        self, messages: Sequence[dict[str, Any]], sampling: Sampling, most: int, members: dict[str, Any], *, room: int
    ) -> ModelReply:
        parameters: dict[str, Any] = {"temperature": sampling.temperature, **members}
        if sampling.top_p < 1:
            parameters["top_p"] = sampling.top_p
        if sampling.temperature:
            parameters["seed"] = sampling.seed
        reply = await self._policy.asker.ask(messages, max_tokens=most, room=room, **parameters)
        self._sampled += reply.tokens
        return reply

    def _step_down(self, why: str) -> None:
        left = self._left.pop(0)
        self.rungs.append(RungUsed(rung=self._left[0], why=f"on {left}, {why}"))

    def _inside(self, text: str) -> str:
        """What the environment says, without the marks around it."""
        text, mark = text.strip(), self.protocol.tags.get("information")
        return text.removeprefix(mark.open).removesuffix(mark.close).strip() if mark else text


def _estimated(rung: Rung, state: State) -> int:
    """The tokens of the next request: instructions, tools, earlier turns, and all that was said and found."""
    messages, members = (plain.request(state)[0], {}) if rung == "plain" else RUNG_PROMPTS[rung].request(state)
    return _tokens(json.dumps([messages, members], ensure_ascii=False))


def _tokens(text: str) -> int:
    return -(-len(text) // CHARS_A_TOKEN)


def _read(reply: ModelReply) -> Move:
    if reply.is_broken:
        raise NoMove("its turn broke off")
    return move_in(reply)


def _written(reply: ModelReply) -> AnswerMove | None:
    """The answer with its evidence of a model that writes a form which was not requested."""
    with suppress(NoMove):
        move = move_in(reply)
        return move if isinstance(move, AnswerMove) and move.evidence else None
    return None


def adapted(protocol: TextProtocol) -> TextProtocol:
    """The protocol with passages as a general model reads them best: their numbers, titles and text."""
    return protocol.model_copy(update={"passage": _PASSAGE, "numbering": "rollout"}) if protocol.numbered else protocol
