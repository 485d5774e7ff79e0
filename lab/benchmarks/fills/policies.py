"""The policies: the oracle, which spells its episodes at a set pace, or a model after a given first turn."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from agent.policies.base import Chunk, Context, Policy, Sampling, WrappedPolicy
from agent.policies.token_context import Sampled, TokenContext
from agent.policies.tokens import Codec
from agent.protocols import TextProtocol
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.trace import Author, Segment
from train.sft.episodes import Episode

UNPLANNED = "?"
"""What the oracle answers where it has no right turns: never right."""
_CHUNK = 8
"""Tokens between two waits: a timer's own error must stay small beside what it waits."""


@dataclass(frozen=True)
class Slowed:
    """A source that takes `seconds` for a search."""

    source: Source
    seconds: float

    async def search(self, request: SearchRequest) -> SearchResult:
        await asyncio.sleep(self.seconds)
        return await self.source.search(request)


def script(expert: Episode | None, codec: Codec) -> dict[str, str]:
    """What is said next, by the whole text before it. Without an episode nothing is known."""
    said: dict[str, str] = {}
    if expert is None:
        return said
    texts = [piece.text for piece in expert.pieces]
    for at, piece in enumerate(expert.pieces):
        if piece.by == "policy":
            said[codec.normal("".join(texts[:at]))] = piece.text
    for fork in expert.forks:
        *before, last = fork.pieces
        said[codec.normal("".join(texts[: fork.at]) + "".join(piece.text for piece in before))] = last.text
    return said


@dataclass(frozen=True)
class OraclePolicy:
    """Says what its script has for a context, in the tokens of a real tokenizer; else nothing that is right."""

    said: Mapping[str, str]
    codec: Codec
    token_seconds: float
    name: str = "oracle"
    context_tokens: int = 8192
    continues: bool = True
    instructed: bool = False

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> TokenContext:
        sampler = _Speller(self, protocol)
        limit = self.context_tokens
        return TokenContext(sampler, self.codec, protocol, question, limit=limit, history=history, date=date)

    async def aclose(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True)
class _Speller:
    policy: OraclePolicy
    protocol: TextProtocol

    async def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        codec, protocol = self.policy.codec, self.protocol
        unknown = f"{protocol.opening('answer')}{UNPLANNED}{protocol.closing('answer')}"
        text = self.policy.said.get(codec.decode(ids), unknown)
        numbers = codec.encode(text, tags=protocol.all_marks)
        for at in range(0, len(numbers), _CHUNK):
            chunk = numbers[at : at + _CHUNK]
            await asyncio.sleep(self.policy.token_seconds * len(chunk))
            yield [(number, 0.0) for number in chunk]


@dataclass(frozen=True)
class Begun(WrappedPolicy[Policy]):
    """A policy whose first turn is given; everything behind it is its own."""

    first: str

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> Context:
        return _BegunContext(self.policy.open(protocol, question, history=history, date=date), self.first)

    async def aclose(self) -> None:
        """The policy is its owner's."""


class _BegunContext:
    """A context in which the first turn is put in as if it had been sampled."""

    def __init__(self, context: Context, first: str) -> None:
        self._context = context
        self._first = first

    @property
    def segments(self) -> list[Segment]:
        return self._context.segments

    @property
    def tokens(self) -> int:
        return self._context.tokens

    @property
    def ended_turn(self) -> bool:
        return self._context.ended_turn

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        if self._first:
            first, self._first = self._first, ""
            put = self._context.append(first, by="loop")  # every mark of the protocol is a control token in it
            ids = put.ids or ()
            given = Segment(by="policy", text=put.text, ids=put.ids, logprobs=(0.0,) * len(ids))
            self._context.segments[-1] = given
            yield Chunk(put.text, ids=ids, logprobs=(0.0,) * len(ids))
            return
        async with aclosing(self._context.generate(sampling, stop=stop, max_tokens=max_tokens)) as chunks:
            async for chunk in chunks:
                yield chunk

    def append(self, text: str, *, by: Author) -> Segment:
        return self._context.append(text, by=by)

    def fork(self) -> Context:
        return _BegunContext(self._context.fork(), self._first)

    def count(self, text: str) -> int:
        return self._context.count(text)
