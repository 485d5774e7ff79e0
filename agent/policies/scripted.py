"""A policy that says what its script holds: for tests, and for work on the UI without a model."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from copy import copy
from dataclasses import dataclass

from agent.errors import ContextFull, PolicyError
from agent.policies.base import Chunk, Sampling
from agent.protocols.base import TextProtocol
from agent.trace import Author, Segment

Turn = str | Exception
Script = Sequence[Turn] | Callable[[str], Turn]


@dataclass(frozen=True)
class ScriptedPolicy:
    """Says `turns` one after the other, in every context from the first one on; an exception among them is raised.

    Each call of `generate` takes one turn; what stands behind a stop mark or `max_tokens` is left unsaid. A function
    instead of a sequence gets the whole context and gives the next turn. A token is one byte of UTF-8.
    """

    turns: Script
    chunk: int = 7
    """Characters that come at once."""
    name: str = "scripted"
    context_tokens: int = 32_768
    continues: bool = True
    instructed: bool = False

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> "ScriptedContext":
        if self.instructed:
            return ScriptedContext(self, f"{protocol.instructions}\n{question}\n")
        return ScriptedContext(self, protocol.prompt_text(question, history=tuple(history), date=date))

    async def aclose(self) -> None:
        """There is nothing to close."""


class ScriptedContext:
    def __init__(self, policy: ScriptedPolicy, prompt: str) -> None:
        self._policy = policy
        self._said = 0
        self.ended_turn = False
        self.segments: list[Segment] = []
        self.tokens = 0
        self.append(prompt, by="prompt")

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        room = min(max_tokens, self._policy.context_tokens - self.tokens)
        if room <= 0:
            raise ContextFull(f"the context of {self._policy.context_tokens} tokens is full")
        turn = self._next()
        if isinstance(turn, Exception):
            raise turn
        text = _until(turn, stop)
        self.ended_turn = False
        said = 0
        tokens = 0
        try:
            while said < len(text):
                piece = text[said : said + self._policy.chunk]
                while piece and tokens + len(piece.encode()) > room:
                    piece = piece[:-1]
                if not piece:
                    yield Chunk("", cut=True)
                    return
                said += len(piece)
                tokens += len(piece.encode())
                yield Chunk(piece, ids=encode(piece), logprobs=logprobs(piece))
                await asyncio.sleep(0)  # an engine waits here, so a rollout can be cancelled here
            self.ended_turn = not any(mark in text for mark in stop)
        finally:
            if said:
                self._add(text[:said], by="policy")

    def append(self, text: str, *, by: Author) -> Segment:
        if self.tokens + self.count(text) > self._policy.context_tokens:
            raise ContextFull(
                f"{self.count(text)} tokens more do not fit: the context takes {self._policy.context_tokens} "
                f"and holds {self.tokens}"
            )
        return self._add(text, by=by)

    def fork(self) -> "ScriptedContext":
        """A copy; the script goes on in each of them from where it is."""
        copied = copy(self)
        copied.segments = list(self.segments)
        return copied

    def count(self, text: str) -> int:
        return len(encode(text))

    def _next(self) -> Turn:
        if callable(self._policy.turns):
            return self._policy.turns("".join(segment.text for segment in self.segments))
        if self._said == len(self._policy.turns):
            return PolicyError("the script has no more turns")
        self._said += 1
        return self._policy.turns[self._said - 1]

    def _add(self, text: str, *, by: Author) -> Segment:
        sampled = logprobs(text) if by == "policy" else None
        self.segments.append(Segment(by=by, text=text, ids=encode(text), logprobs=sampled))
        self.tokens += len(self.segments[-1].ids or ())
        return self.segments[-1]


def encode(text: str) -> tuple[int, ...]:
    """The bytes of the text as ids."""
    return tuple(text.encode())


def logprobs(text: str) -> tuple[float, ...]:
    """A made-up log-probability for each token; it depends on nothing but the token."""
    return tuple(-(1 + byte % 8) / 16 for byte in text.encode())


def _until(turn: str, stop: Sequence[str]) -> str:
    """The turn up to the first stop mark, which is included."""
    ends = [at + len(mark) for mark in stop if (at := turn.find(mark)) >= 0]
    return turn[: min(ends, default=len(turn))]
