"""The policy behind any OpenAI-compatible chat endpoint: Ollama, llama.cpp, vLLM, a commercial API."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from copy import copy
from typing import Any, Final

from agent.errors import ContextFull, PolicyError
from agent.outbound.completions import CompletionPart, read_chat
from agent.outbound.llm import MOST_STOPS, LlmClient
from agent.outbound.llm_errors import broke_off
from agent.policies.base import Chunk, Sampling
from agent.policies.openai_abilities import Continuation
from agent.protocols.base import Role, TextProtocol
from agent.protocols.parse import TagReader
from agent.trace import Author, Segment


class ChatTurn:
    """Puts a turn together. `text` is what the loop reads, `content` goes to the server in the next turn."""

    def __init__(self, protocol: TextProtocol, stop: Sequence[str], *, opened: Role | None = None) -> None:
        """Read a turn, from inside the block `opened` where the turn goes on in one."""
        self.stopped = False
        """A stop text was said."""
        self._protocol = protocol
        self._stop = stop
        self._opened = opened
        self._reader = TagReader(protocol.policy_marks, opened=opened)
        self._thinking = False
        self._held = ""
        self._text: list[str] = []
        self._content: list[str] = []
        self._tail = ""
        """The end of the content, as long as a stop text may be."""
        self._longest = max(map(len, stop), default=0)
        self.chars = 0
        """Of content and reasoning together."""

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def content(self) -> str:
        return "".join(self._content)

    def think(self, text: str) -> str:
        """Take reasoning that the server sends apart from the text; gives it inside the protocol's tags of a thought.

        A closing tag in it is changed: what is thought there never speaks for the text. Reasoning after the text has
        begun is left out, and so is all of it inside of another block, or where the protocol has no thoughts.
        """
        self.chars += len(text)
        if not text or "thought" not in self._protocol.tags or self._content or self._opened:
            return ""
        new = "" if self._thinking else self._protocol.opening("thought")
        self._thinking = True
        closing = self._protocol.closing("thought")
        held = (self._held + text).replace(closing, f"({closing[1:-1]})")
        keep = _begun(closing, held)
        self._held = held[len(held) - keep :]
        return self._emit(new + held[: len(held) - keep])

    @property
    def open_role(self) -> Role | None:
        """The role of the block that is open."""
        return self._reader.open_role

    def say(self, text: str) -> str:
        """Take text; gives what of it counts, up to the end of the first stop text."""
        if not text or self.stopped:
            return ""
        seen = self._tail + text
        ends = [at + len(mark) for mark in self._stop if (at := seen.find(mark)) >= 0]
        if ends:
            self.stopped = True
            seen = seen[: min(ends)]
        new = seen[len(self._tail) :]
        self._tail = seen[-self._longest :] if self._longest else ""
        self.chars += len(new)
        thought = self._end_thought()
        self._content.append(new)
        for _ in self._reader.feed(new):
            pass
        return thought + self._emit(new)

    def end(self, *, natural: bool) -> str:
        """The server has ended the turn; gives what it left out.

        Args:
            natural: by a stop text or of itself, not for want of tokens. Servers drop the stop text, or what they have
                not sent of it: where the block that it closes is open, it is put back.
        """
        thought = self._end_thought()
        role = self._reader.open_role
        closing = self._protocol.closing(role) if role else ""
        if natural and not self.stopped and closing in self._stop:
            return thought + self.say(closing[_begun(closing, self._tail) :])
        return thought

    def _end_thought(self) -> str:
        if not self._thinking:
            return ""
        self._thinking = False
        held, self._held = self._held, ""
        return self._emit(f"{held}{self._protocol.closing('thought')}\n")

    def _emit(self, text: str) -> str:
        self._text.append(text)
        return text


def _begun(mark: str, text: str) -> int:
    """How many characters of `mark` the text ends with."""
    return next((n for n in range(min(len(mark), len(text)), 0, -1) if text.endswith(mark[:n])), 0)


CHARS_A_TOKEN: Final = 4
"""For the estimate where the server does not report it."""
MOST_CHARS_A_TOKEN: Final = 16
"""A turn that is longer than this for each token that it may have is cut there, whatever the server says."""
_REFUSAL: Final = 200
"""Characters of the words in which a model refuses."""
CONTEXT_TOKENS: Final = 32_768
"""Where neither the server nor a setting says how long a context may be."""
SOURCES: Final = ("web", "news", "arxiv", "kg")
"""What the little world has."""


class ChatPolicy:
    """A general model whose prompt holds the protocol's rules. It gives neither ids nor log-probabilities."""

    instructed = True

    def __init__(
        self,
        endpoint: LlmClient,
        *,
        sources: Sequence[str] = SOURCES,
        context_tokens: int = CONTEXT_TOKENS,
        continuation: Continuation | None = None,
        special_tokens: tuple[str, ...] = (),
    ) -> None:
        """Take note of an endpoint; nothing is sent yet.

        Args:
            endpoint: of the server.
            sources: what the instructions say can be searched.
            context_tokens: the longest context that the model takes.
            continuation: how a request makes the server go on inside the model's turn; None where it cannot.
            special_tokens: of the model's tokenizer, where that is at hand.
        """
        self.name = endpoint.model
        self.context_tokens = context_tokens
        self.continues = continuation is not None
        self.sources = tuple(sources)
        self.endpoint = endpoint
        self.continuation = continuation
        self.special_tokens = special_tokens

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> "ChatContext":
        """Open a chat: the protocol's instructions as the system's message, earlier turns, the question."""
        return ChatContext(self, protocol, question, history, date=date)

    async def aclose(self) -> None:
        await self.endpoint.aclose()


class ChatContext:
    """One chat. The server goes on inside the model's turn where it can; else turns alternate."""

    ended_turn = False
    """Turns are the server's to end."""

    def __init__(
        self,
        policy: ChatPolicy,
        protocol: TextProtocol,
        question: str,
        history: Sequence[tuple[str, str]],
        *,
        date: str = "",
    ) -> None:
        self._policy = policy
        self._protocol = protocol
        rules = protocol.rules(date).replace("{sources}", ", ".join(policy.sources))
        rules = rules.replace("{rounds}", str(protocol.max_rounds))
        self._messages: list[dict[str, str]] = [{"role": "system", "content": rules}]
        for question_, answered in history:
            self._messages += [{"role": "user", "content": question_}, {"role": "assistant", "content": answered}]
        self._messages.append({"role": "user", "content": question})
        prompt = "\n\n".join(message["content"] for message in self._messages)
        self._opened: Role | None = None
        """The block in which the model's turn stands open."""
        self.segments: list[Segment] = [Segment(by="prompt", text=prompt)]
        self.tokens = _estimate(prompt)
        """Estimated by characters but for the turns whose length the server reported."""

    def append(self, text: str, *, by: Author) -> Segment:
        """Put text into the model's own turn where the server can go on there; else say it in a turn of the user's."""
        inside = self._spoke and by == "environment" and self._protocol.deliver == "continue"
        if self._policy.continues and (inside or by == "loop"):
            self._go_on(text)
        else:
            self._say("user", text.strip())
            self._opened = None
        self.segments.append(Segment(by=by, text=text))
        self.tokens += _estimate(text)
        return self.segments[-1]

    def fork(self) -> "ChatContext":
        copied = copy(self)
        copied._messages = list(self._messages)
        copied.segments = list(self.segments)
        return copied

    def count(self, text: str) -> int:
        return _estimate(text)

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        """Let the model take its turn; see `agent.policies.base.Context`.

        Raises:
            PolicyError: the server failed; the sentence says what to do. ContextFull where the chat is too long.
        """
        room = min(max_tokens, self._policy.context_tokens - self.tokens)
        if room <= 0:
            raise ContextFull(f"the context of {self._policy.context_tokens} tokens is full")
        if self._spoke and not self._policy.continues:
            self._say("user", "Go on.")
        turn = ChatTurn(self._protocol, stop, opened=self._opened if self._spoke else None)
        most = MOST_CHARS_A_TOKEN * room
        reported: int | None = None
        finish = refusal = ""
        try:
            messages, more = self._request()
            stream = self._policy.endpoint.chat(messages, **_parameters(sampling, stop, room), **more)
            async with stream as events, aclosing(events):
                async for event in events:
                    said = read_chat(event)
                    reported = said.completion_tokens or reported
                    finish = said.finish or finish
                    refusal = (refusal + said.refusal)[:_REFUSAL]
                    if text := _take(turn, said, most=most):
                        yield Chunk(text)
                    if turn.stopped or turn.chars >= most:
                        break
            overlong = turn.chars >= most and not turn.stopped
            if not finish and not turn.stopped and not overlong:
                raise PolicyError(self._broken(turn))
            if finish == "content_filter":
                raise PolicyError(f"the server's content filter ended the turn of {self._policy.name}")
            if refusal and not turn.content:
                raise PolicyError(f"{self._policy.name} refused: {refusal}", kind="refused")
            cut = (finish == "length" or overlong) and not turn.stopped
            if (rest := turn.end(natural=not cut)) or cut:
                yield Chunk(rest, cut=cut)
        finally:
            self._keep(turn, reported)

    def _keep(self, turn: ChatTurn, reported: int | None) -> None:
        """What was said becomes a segment, and the model's turn in the next request."""
        if turn.content:
            self._go_on(turn.content)
        self._opened = turn.open_role
        if turn.text:
            self.segments.append(Segment(by="policy", text=turn.text))
        self.tokens += max(reported, turn.chars // MOST_CHARS_A_TOKEN) if reported else -(-turn.chars // CHARS_A_TOKEN)

    @property
    def _spoke(self) -> bool:
        """Whether the last word is the model's."""
        return self._messages[-1]["role"] == "assistant"

    def _request(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The messages, and the members of the request that have the last one continued."""
        messages: list[dict[str, Any]] = list(self._messages)
        continuation = self._policy.continuation
        if continuation is None or not self._spoke:
            return messages, {}
        messages[-1] = messages[-1] | dict(continuation.message)
        return messages, dict(continuation.request)

    def _go_on(self, text: str) -> None:
        """Text of the model's turn, as it stands; also what others put there."""
        if not self._spoke:
            self._messages.append({"role": "assistant", "content": text})
        else:
            self._messages[-1] = {"role": "assistant", "content": self._messages[-1]["content"] + text}
        reader = TagReader(self._protocol.policy_marks)
        for _ in reader.feed(text):
            pass
        self._opened = reader.open_role

    def _say(self, role: str, text: str) -> None:
        last = self._messages[-1]
        if last["role"] == role:
            self._messages[-1] = {"role": role, "content": f"{last['content']}\n\n{text}"}
        else:
            self._messages.append({"role": role, "content": text})

    def _broken(self, turn: ChatTurn) -> str:
        where = self._policy.endpoint.base_url
        if turn.chars:
            return broke_off(where)
        return f"the server at {where} sent no chat completion; check whether --base-url should end in /v1"


def _parameters(sampling: Sampling, stop: Sequence[str], max_tokens: int) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": sampling.temperature,
        "stream_options": {"include_usage": True},
    }
    if stop:
        parameters["stop"] = list(stop[:MOST_STOPS])
    if sampling.top_p < 1:
        parameters["top_p"] = sampling.top_p
    if sampling.temperature:
        parameters["seed"] = sampling.seed
    if sampling.top_k:
        parameters["top_k"] = sampling.top_k
    return parameters


def _take(turn: ChatTurn, said: CompletionPart, *, most: int) -> str:
    """What one event adds to the turn, which has at most `most` characters."""
    thought = turn.think(said.reasoning[: most - turn.chars])
    return thought + turn.say(said.content[: most - turn.chars])


def _estimate(text: str) -> int:
    return -(-len(text) // CHARS_A_TOKEN)
