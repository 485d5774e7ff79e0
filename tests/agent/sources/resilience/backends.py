"""Fake backends for the tests of what is put around them: they do what their plan says, and keep their own books."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from agent.errors import SourceError, SourceErrorKind
from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.limits import Limits
from tests.virtual_clock import now

Act = float | BaseException | Sequence[Passage] | Callable[[], SearchResult]
"""Seconds to take, what to raise, or what to answer."""

HANG = 1e9
"""Seconds that no one waits for."""


def passage(name: str, *, url: str = "") -> Passage:
    return Passage(id=name, source="web", title=name, text=f"All about {name}.", url=url)


def error(kind: SourceErrorKind, why: str = "", *, retry_after: float | None = None) -> SourceError:
    return SourceError(why or f"it said {kind}", kind=kind, retry_after=retry_after)


class Scripted:
    """Does one act a call, the last one for ever; a call without an act answers with its query."""

    def __init__(
        self,
        *acts: Act,
        name: str = "tavily",
        limits: Limits | None = None,
        credits: float = 1.0,
        seconds: float = 0.0,
        seconds_to_leave: float = 0.0,
    ) -> None:
        self.name = name
        self.limits = limits or Limits(requests=1000, concurrency=1000)
        self.credits_per_search = credits
        self.acts: Sequence[Act] = acts
        self.seconds = seconds
        self.seconds_to_leave = seconds_to_leave
        self.requests: list[tuple[float, str]] = []
        self.running = 0
        self.most_running = 0
        self.closed = 0

    async def search(self, request: SearchRequest) -> SearchResult:
        self.requests.append((now(), request.query))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self.seconds)
            return await self._act(request.query, request.limit)
        except asyncio.CancelledError:
            await asyncio.sleep(self.seconds_to_leave)
            raise
        finally:
            self.running -= 1

    async def _act(self, query: str, limit: int) -> SearchResult:
        act, *rest = self.acts or [0.0]
        self.acts = rest or [act]
        if isinstance(act, BaseException):
            raise act
        if isinstance(act, float | int):
            await asyncio.sleep(act)
            act = [passage(f"{self.name} on {query}")]
        if callable(act):
            return act()
        return SearchResult(tuple(act[:limit]), backend=self.name, credits=self.credits_per_search)

    @property
    def times(self) -> list[float]:
        """When it was searched, in virtual seconds."""
        return [round(at, 3) for at, _ in self.requests]

    async def aclose(self) -> None:
        self.closed += 1


def most_in_window(times: Iterable[float], seconds: float) -> int:
    """The most of `times` that any window of that length holds; its end is not in it."""
    ordered = sorted(times)
    return max(
        (sum(1 for at in ordered[first:] if at < start + seconds - 1e-6) for first, start in enumerate(ordered)),
        default=0,
    )
