"""The fake model and searches of a load: a policy that writes tokens at a set pace and stamps each one with the time
at which it is due, and a source that takes its time. Both signal when they are let go. They follow what the question
says. A token is due whether the server has time to take it or not, as those of an engine elsewhere would be.
"""  # noqa: D205 - one sentence over two lines

import asyncio
import re
from collections.abc import AsyncGenerator, Generator, Sequence
from copy import copy
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Final, Literal, cast

from agent.errors import ContextFull
from agent.evidence import Passage
from agent.policies.base import Chunk, Sampling
from agent.protocols.base import TextProtocol
from agent.sources.base import SearchRequest, SearchResult
from agent.trace import Author, Segment
from lab.benchmarks.load.process import Send

SEARCH_SECONDS: Final = 0.1
TOKENS_PER_S: Final = 20.0
"""Of each stream."""
THOUGHT_TOKENS: Final = 200
ANSWER_TOKENS: Final = 100
TOKENS: Final = THOUGHT_TOKENS + ANSWER_TOKENS
"""Stamped tokens of one answer."""
STAMP: Final = re.compile(r"\b(m\d+x\d+)\.(\d+)\.(\d+)\b")
"""A token: marker of its stream, number, and when it was due."""
MARKER: Final = re.compile(rb"\bm\d+x\d+\b")
_JOB: Final = re.compile(r"(whole|hold policy|hold search) (m\d+x\d+)")

Place = Literal["policy", "search"]
Job = Literal["whole", "hold policy", "hold search"]
_NOW: Final = ""
"""A stamped token, in a script."""


@dataclass(frozen=True)
class Signal:
    """A policy or a search began, or was let go, at this time of `time.perf_counter_ns`."""

    what: Literal["began", "let go"]
    place: Place
    marker: str
    at: int


def text_of(job: Job, marker: str) -> str:
    """The question that makes the policy do a job."""
    return f"{job} {marker}"


def script(job: Job, marker: str, turn: int, tokens: tuple[int, int]) -> Generator[str]:
    """The pieces of a turn, a token each; the first turn is 1."""
    thought, answer = tokens
    if job == "hold policy":
        yield "<think>"
        while True:
            yield _NOW
    if turn == 1:
        yield "<think>"
        yield from [_NOW] * (thought if job == "whole" else 1)
        yield "</think>\n"
        yield f"<search>\nA: {job} {marker} (web)\n</search>"
        return
    yield f"<merge>{marker} is on record [1].</merge>\n"
    yield f"<evidence>\n- {marker} is on record. [1]\n</evidence>\n"
    yield "<answer>"
    yield from [_NOW] * answer
    yield "</answer>"


@dataclass(frozen=True)
class PacedPolicy:
    """Writes as its question says: a whole answer, an endless thought, or a search that never ends."""

    send: Send
    tokens_per_s: float = TOKENS_PER_S
    tokens: tuple[int, int] = (THOUGHT_TOKENS, ANSWER_TOKENS)
    """Stamped ones of the thought and of the answer."""
    name: str = "paced"
    context_tokens: int = 32_768
    continues: bool = True
    instructed: bool = False

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> "PacedContext":
        return PacedContext(self, question)

    async def aclose(self) -> None:
        """There is nothing to close."""


class PacedContext:
    ended_turn = False

    def __init__(self, policy: PacedPolicy, question: str) -> None:
        found = _JOB.search(question)
        self._policy = policy
        self._job: Job = cast("Job", found[1]) if found else "whole"
        self._marker = found[2] if found else "m0x0"
        self._turns = 0
        self._stamped = 0
        self.segments: list[Segment] = [Segment(by="prompt", text=question)]
        self.tokens = self.count(question)

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        self._turns += 1
        began, said = perf_counter_ns(), list[str]()
        if holds := self._job == "hold policy":
            self._signal("began")
        try:
            for number, piece in enumerate(script(self._job, self._marker, self._turns, self._policy.tokens)):
                due = began + round(number * 1e9 / self._policy.tokens_per_s)
                await asyncio.sleep((due - perf_counter_ns()) / 1e9)
                if len(said) == max_tokens:
                    yield Chunk("", cut=True)
                    return
                said.append(piece or self._stamp(due))
                yield Chunk(said[-1])
        finally:
            if holds:
                self._signal("let go")
            if said:
                self.segments.append(Segment(by="policy", text="".join(said)))
                self.tokens += len(said)

    def append(self, text: str, *, by: Author) -> Segment:
        if self.tokens + self.count(text) > self._policy.context_tokens:
            raise ContextFull(f"the context of {self._policy.context_tokens} tokens is full")
        self.segments.append(Segment(by=by, text=text))
        self.tokens += self.count(text)
        return self.segments[-1]

    def fork(self) -> "PacedContext":
        copied = copy(self)
        copied.segments = list(self.segments)
        return copied

    def count(self, text: str) -> int:
        return -(-len(text) // 4)

    def _stamp(self, due: int) -> str:
        self._stamped += 1
        return f" {self._marker}.{self._stamped - 1}.{due}"

    def _signal(self, what: Literal["began", "let go"]) -> None:
        self._policy.send(Signal(what, "policy", self._marker, perf_counter_ns()))


@dataclass(frozen=True)
class PacedSource:
    """One passage for every query, after a while; a query that says so is never answered."""

    send: Send
    seconds: float = SEARCH_SECONDS

    async def search(self, request: SearchRequest) -> SearchResult:
        found = _JOB.search(request.query)
        marker = found[2] if found else request.query
        if found and found[1] == "hold search":
            await self._hold(marker)
        await asyncio.sleep(self.seconds)
        url = f"https://example.org/{marker}"
        passage = Passage(id=marker, source="web", title=marker, text=f"{marker} is on record.", url=url)
        return SearchResult((passage,))

    async def _hold(self, marker: str) -> None:
        self.send(Signal("began", "search", marker, perf_counter_ns()))
        try:
            await asyncio.Event().wait()
        finally:
            self.send(Signal("let go", "search", marker, perf_counter_ns()))
