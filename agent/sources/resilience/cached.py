"""A source that remembers: equal queries in flight share one call, and what was found is kept for a while.

What is kept, and for how long: an answer for `keep_seconds`; after that, for `stale_seconds` more, only to be given
where a new request fails (and is marked stale). An incomplete answer is fresh for ten minutes at most, and so is one
that is honestly empty, which is never given later; an empty one that came after failures is not kept, an error neither.
What cannot be read is not there.

Who shares a call: it is made for all, paid by the first who is still there when it ends, and cancelled when
no one is. Its failures go to each one that waited for its end, and to no one who left before.
"""

import asyncio
import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ValidationError

from agent.errors import Failure, SourceError
from agent.evidence import Passage
from agent.sources.base import Closable, SearchRequest, SearchResult, Source, credits_of
from agent.sources.limits import Limits
from agent.sources.resilience.limiter import spoken
from agent.sources.resilience.store import AnswerStore

VERSION: Final = 1
"""Of an entry: one of another version is not there."""
BRIEF_SECONDS: Final = 600.0
"""For what another search may soon find more than."""
STANDS_IN: Final = frozenset({"rate", "quota", "upstream", "timeout", "auth"})
"""Kinds of failure for which an old answer may be given; a bad query has no good old answer."""


class CachedAnswer(BaseModel):
    """What is kept of one answer."""

    version: Literal[1] = VERSION
    key: str
    saved: float
    """Seconds since 1970."""
    backend: str
    notes: tuple[str, ...]
    passages: tuple[Passage, ...]
    incomplete: bool = False


class _Flight:
    """One call for all that request the same at the same time."""

    def __init__(self) -> None:
        self.task: asyncio.Task[SearchResult]
        self.waiting = 0
        self.paid = False
        self.old: CachedAnswer | None = None
        """What may be given instead, once it was looked up."""


class Cached:
    """Remembers what a source found."""

    def __init__(
        self,
        source: Source,
        *,
        name: str,
        store: AnswerStore | None,
        limits: Limits,
        variant: str = "",
        whole: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Remember what `source` finds.

        Args:
            source: searched for what is not kept.
            name: part of every key: two sources with one name share their answers.
            store: None: equal queries in flight share a call, and nothing is kept.
            limits: `keep_seconds` and `stale_seconds` count.
            variant: what else answers depend on, for example the backends and where they are; part of every key too.
            whole: the question, its entities and its relations count, too; otherwise only the query does.
            now: seconds since 1970.
        """
        self.name = name
        self._variant = variant
        self._whole = whole
        self._source = source
        self._store = store
        self._keep_seconds = limits.keep_seconds
        self._stale_seconds = limits.stale_seconds
        self._now = now
        self._flights: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Flight]] = WeakKeyDictionary()

    @property
    def credits_per_search(self) -> float:
        return credits_of(self._source)

    @property
    def keep_seconds(self) -> float:
        return self._keep_seconds

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give what is kept, or ask.

        Raises:
            SourceError: the request failed, and no old answer may be given.
        """
        failures: tuple[Failure, ...] = ()
        credits = usd = 0.0
        while True:
            flight = self._flight(request)
            joined = flight.waiting > 0
            try:
                found = await self._wait(flight, request)
            except SourceError as error:
                failures += error.failures
                credits, usd = credits + error.credits, usd + error.usd
                if joined and error.kind == "timeout" and request.seconds_left:
                    continue  # it ended with the time of those who began it; there is some left here
                raise error.after(failures, credits=credits, usd=usd) from error
            cost = credits_of(self._source) if found.credits is None else found.credits
            return replace(found, failures=(*failures, *found.failures), credits=credits + cost, usd=usd + found.usd)

    async def _wait(self, flight: _Flight, request: SearchRequest) -> SearchResult:
        left = request.seconds_left
        flight.waiting += 1
        try:
            async with asyncio.timeout(None if math.isinf(left) else left):
                await asyncio.wait([flight.task])
            return self._landed(flight)
        except TimeoutError:
            return self._stand_in(flight.old, SourceError(f"no answer in {spoken(left)}", kind="timeout"))
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                flight.task.cancel()  # now, so that no one boards it any more
                await asyncio.wait([flight.task])

    async def aclose(self) -> None:
        """End what is in flight, then close the source and the store."""
        flights = list(self._flights.get(asyncio.get_running_loop(), {}).values())
        for flight in flights:
            flight.task.cancel()
        if flights:
            await asyncio.wait([flight.task for flight in flights])
        if isinstance(self._source, Closable):
            await self._source.aclose()
        if self._store is not None:
            await self._store.aclose()

    def key(self, request: SearchRequest) -> str:
        """What makes two searches equal. White space does not count, case does: it may be a name's."""
        conditions = [(f.name, f.value) for f in sorted(request.filters, key=lambda f: f.name)]
        query = " ".join(request.query.split())
        counted = [VERSION, self.name, self._variant, query, request.limit, conditions]
        if self._whole:
            counted += [request.question, request.entities, request.relations]
        return f"cairn:search:{VERSION}:{hashlib.sha256(json.dumps(counted).encode()).hexdigest()}"

    def _flight(self, request: SearchRequest) -> _Flight:
        """The flight that answers this request: the one on its way, or a new one."""
        key = self.key(request)
        flights = self._flights.setdefault(asyncio.get_running_loop(), {})
        there = flights.get(key)
        if there is not None and not there.task.done() and not there.task.cancelling():
            return there
        flight = _Flight()
        flight.task = asyncio.create_task(self._fly(flight, key, request.within(request.seconds_left)))

        def landed(task: asyncio.Task[SearchResult]) -> None:
            if flights.get(key) is flight:
                del flights[key]
            if not task.cancelled():
                task.exception()  # it was seen: perhaps no one waits any more

        flight.task.add_done_callback(landed)
        flights[key] = flight
        return flight

    async def _fly(self, flight: _Flight, key: str, request: SearchRequest) -> SearchResult:
        """Look up, ask, keep."""
        old = await self._look_up(key, within=request.seconds_left)
        if old is not None:
            age = self._now() - old.saved
            if 0 <= age < self._fresh_for(old):
                return _kept(old, cached="fresh")
            if old.passages and age < self._keep_seconds + self._stale_seconds:
                flight.old = old
        found = await self._source.search(request)
        await self._keep(key, found, within=request.seconds_left)
        return found

    def _landed(self, flight: _Flight) -> SearchResult:
        """What one of those who waited gets; the first one pays."""
        if flight.task.cancelled():
            raise SourceError(f"{self.name} was closed")
        paid, flight.paid = flight.paid, True
        error = flight.task.exception()
        if isinstance(error, SourceError):
            return self._stand_in(flight.old, error.after(error.failures, credits=0.0, usd=0.0) if paid else error)
        if error is not None:
            raise SourceError(f"{type(error).__name__}: {error}") from error
        found = flight.task.result()
        return replace(found, credits=0.0, usd=0.0) if paid else found

    def _stand_in(self, old: CachedAnswer | None, error: SourceError) -> SearchResult:
        """An old answer in place of a failure, or the failure."""
        if old is None or error.kind not in STANDS_IN:
            raise error
        note = f"found {spoken(self._now() - old.saved)} ago: a new request failed"
        failures = error.failures or (Failure(self.name, error.kind, str(error)),)
        kept = _kept(old, cached="stale")
        return replace(kept, notes=(*old.notes, note), failures=failures, credits=error.credits, usd=error.usd)

    def _fresh_for(self, answer: SearchResult | CachedAnswer) -> float:
        brief = answer.incomplete or not answer.passages
        return min(self._keep_seconds, BRIEF_SECONDS) if brief else self._keep_seconds

    async def _look_up(self, key: str, *, within: float) -> CachedAnswer | None:
        raw = await self._store.get(key, within=within) if self._store else None
        if raw is None:
            return None
        try:
            entry = CachedAnswer.model_validate_json(raw)
        except ValidationError:
            return None
        return entry if entry.key == key else None

    async def _keep(self, key: str, found: SearchResult, *, within: float) -> None:
        passages = found.passages
        seconds = self._fresh_for(found) + (self._stale_seconds if passages else 0.0)
        if self._store is None or self._keep_seconds <= 0 or found.cached or (found.failures and not passages):
            return
        entry = CachedAnswer(
            key=key,
            saved=self._now(),
            backend=found.backend,
            notes=found.notes,
            passages=passages,
            incomplete=found.incomplete,
        )
        await self._store.put(key, entry.model_dump_json().encode(), seconds=seconds, within=within)


def _kept(entry: CachedAnswer, *, cached: Literal["fresh", "stale"]) -> SearchResult:
    """What was kept, which costs nothing now."""
    return SearchResult(
        entry.passages,
        backend=entry.backend,
        notes=entry.notes,
        cached=cached,
        credits=0.0,
        incomplete=entry.incomplete,
    )
