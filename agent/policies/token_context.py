"""A context of token ids over any engine that samples them. Where a turn stops is decided here, once for all engines.

An engine is a `Sampler`: ids in, ids with log-probabilities out. It knows neither text nor stop texts.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from copy import copy
from typing import Protocol, Self, runtime_checkable

from agent.errors import ContextFull
from agent.policies.base import Chunk, Sampling
from agent.policies.tokens import Codec
from agent.protocols.base import TextProtocol
from agent.trace import Author, Segment

Sampled = tuple[int, float]
"""A token id and its natural log-probability: that of the policy itself, before temperature, top-k and top-p."""


class Sampler(Protocol):
    """What continues ids."""

    def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        """Give what is sampled after `ids`, one or more tokens at a time.

        It ends after a token of `ends`, which is given too, or after `max_tokens`. What it gives beyond that is left
        out by the caller. Closing it frees the engine's slot at the next token.

        Raises:
            PolicyError: the engine failed, or gave up.
        """
        ...


@runtime_checkable
class StopsAtText(Protocol):
    """A sampler that can look for stop texts, too. The context still decides where a turn stops."""

    def sample_until(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], stop: Sequence[str], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        """As `Sampler.sample`; it may also end with the token that completes one of `stop`."""
        ...


class TokenContext:
    """One context that only grows, as segments with ids. Engines make it; see `agent.policies.base.Context`."""

    def __init__(
        self,
        sampler: Sampler,
        codec: Codec,
        protocol: TextProtocol,
        question: str,
        *,
        limit: int,
        history: Sequence[tuple[str, str]] = (),
        date: str = "",
    ) -> None:
        """Open a context with the protocol's prompt. Marks in the question are plain text.

        Args:
            sampler: the engine.
            codec: of the model's tokenizer.
            protocol: whose prompt it is, and whose marks become control tokens.
            question: the user's.
            limit: tokens that the context takes.
            history: earlier turns as (question, answer).
            date: today's, for prompts that hold it.

        Raises:
            ContextFull: the prompt is longer than the context.
        """
        self._sampler = sampler
        self._until = sampler if isinstance(sampler, StopsAtText) else None
        self._codec = codec
        self._limit = limit
        self._ended_turn = False
        self._ids: list[int] = []
        self._segments: list[Segment] = []
        self._marks = _marks(protocol)
        said = protocol.prompt_pieces(question, history=tuple(history), date=date)
        pieces = [(codec.normal(piece.text), piece.control) for piece in said]
        self._add("".join(text for text, _ in pieces), codec.encode_pieces(pieces), by="prompt")

    @property
    def segments(self) -> list[Segment]:
        return self._segments

    @property
    def tokens(self) -> int:
        return len(self._ids)

    @property
    def ended_turn(self) -> bool:
        """Whether the policy ended the turn that it sampled last itself, with a token that ends one."""
        return self._ended_turn

    def count(self, text: str) -> int:
        """Tokens that the text would take if the environment said it."""
        return len(self._codec.encode(text, tags=self._marks["environment"]))

    def fork(self) -> Self:
        """A context of its own that starts as a copy of this one."""
        forked = copy(self)
        forked._ids = list(self._ids)
        forked._segments = list(self._segments)
        return forked

    def append(self, text: str, *, by: Author) -> Segment:
        """Put text into the context that the policy did not sample. It is encoded once, on its own.

        What the environment says may hold its own marks only, what the loop says every mark of the protocol; all other
        marks, and all of them in what anyone else says, are plain text.

        Raises:
            ContextFull: there is no room for it; nothing was appended.
        """
        return self._add(self._codec.normal(text), self._codec.encode(text, tags=self._marks.get(by, ())), by=by)

    def repeat(self, sampled: Segment) -> None:
        """Put a segment into the context that the policy sampled here before, token by token as it was.

        Raises:
            ContextFull: there is no room for it; nothing was appended.
        """
        ids = sampled.ids or ()
        if len(self._ids) + len(ids) > self._limit:
            raise ContextFull(f"{len(ids)} tokens more do not fit: the context takes {self._limit}")
        self._ids += ids
        self._segments.append(sampled)
        self._ended_turn = bool(ids) and ids[-1] in self._codec.ends

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        """Continue the context; see `agent.policies.base.Context`. The end of the context ends it as `max_tokens` does.

        Raises:
            PolicyError: the engine failed; ContextFull where there is no room.
        """
        room = min(max_tokens, self._limit - len(self._ids))
        if room <= 0:
            raise ContextFull(f"the context of {self._limit} tokens is full")
        ends = self._codec.ends | {number for text in stop if (number := self._codec.id_of(text)) is not None}
        turn = _Turn(self._codec, stop=stop, ends=ends, limit=room)
        try:
            async with aclosing(self._sample(sampling, ends=ends, stop=stop, max_tokens=room)) as batches:
                async for sampled in batches:
                    for token in sampled:  # one by one: what is reported does not depend on which thread was faster
                        yield turn.feed(*token)
                        if turn.over:
                            break
                    if turn.over:
                        break
            if (rest := turn.end()) or turn.cut:
                yield Chunk(rest, cut=turn.cut)
        finally:
            self._ended_turn = bool(turn.ids) and turn.ids[-1] in self._codec.ends
            if turn.ids:
                turn.end()
                self._segments.append(turn.segment())
                self._ids += turn.ids

    def _sample(
        self, sampling: Sampling, *, ends: frozenset[int], stop: Sequence[str], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        ids = tuple(self._ids)
        if self._until is not None and stop:
            return self._until.sample_until(ids, sampling, ends=ends, stop=stop, max_tokens=max_tokens)
        return self._sampler.sample(ids, sampling, ends=ends, max_tokens=max_tokens)

    def _add(self, text: str, ids: tuple[int, ...], *, by: Author) -> Segment:
        if len(self._ids) + len(ids) > self._limit:
            raise ContextFull(
                f"{len(ids)} tokens more do not fit: the context takes {self._limit} and holds {len(self._ids)}"
            )
        segment = Segment(by=by, text=text, ids=ids)
        self._ids += ids
        self._segments.append(segment)
        return segment


class _Turn:
    """What was sampled in one turn, up to and with the token that completes a stop text.

    That token is kept whole, also where its text goes on behind the stop: ids and text agree. Nothing behind it is.
    """

    def __init__(self, codec: Codec, *, stop: Sequence[str], ends: Collection[int], limit: int) -> None:
        self._stream = codec.stream()
        self._stop = stop
        self._longest = max(map(len, stop), default=0)
        self._ends = ends
        self._limit = limit
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.text = ""
        self.over = False
        """A stop text is complete, an end was sampled, or the limit was reached."""
        self.cut = False
        """Over for want of tokens alone."""

    def feed(self, number: int, logprob: float) -> Chunk:
        self.ids.append(number)
        self.logprobs.append(logprob)
        new = self._stream.feed(number)
        self.text += new
        tail = self.text[-(self._longest + len(new)) :]
        stopped = bool(new) and any(mark in tail for mark in self._stop)
        self.cut = len(self.ids) >= self._limit and not stopped and number not in self._ends
        self.over = self.cut or stopped or number in self._ends
        return Chunk(new, (number,), (logprob,))

    def end(self) -> str:
        """The text of a character that stayed incomplete; nothing the second time."""
        rest = self._stream.end()
        self.text += rest
        return rest

    def segment(self) -> Segment:
        return Segment(by="policy", text=self.text, ids=tuple(self.ids), logprobs=tuple(self.logprobs))


def _marks(protocol: TextProtocol) -> dict[Author, Sequence[str]]:
    """Author → the marks that are control tokens in what it says."""
    return {"environment": protocol.environment_marks, "loop": protocol.all_marks}
