"""The way to one backend, for all who ask it: how many at a time, how often, and when it wants to be left alone.

A limiter reads nothing of a request but its deadline. Two sources that ask the same backend (Serper's web and its
news) share its limiter.
"""

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakKeyDictionary

from aiolimiter import AsyncLimiter

from agent.errors import SourceError
from agent.sources.base import SearchRequest
from agent.sources.limits import Limits
from agent.sources.resilience.breaker import Breaker, Permit

TRYING: Final = "another request is just trying it"
LONGEST_SECONDS: Final = 24 * 3600.0
"""No backend is left alone for longer, whatever a header says."""
_RESOLUTION: Final = 1e-6
"""Seconds: an event loop may wake a sleeper a little early."""


class NotTried(SourceError):
    """The backend was not tried: it is left alone, or the turn would come too late."""


class RateLimiter:
    """Concurrency and rate hold in each event loop; the breaker and a Retry-After hold for all of them."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.name = name
        self.limits = limits
        self.breaker = Breaker(failures=limits.breaker_failures, seconds=limits.breaker_seconds)
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lane] = WeakKeyDictionary()
        self._paused_until = 0.0
        self._last: SourceError | None = None

    def pause(self, seconds: float) -> None:
        """Leave the backend alone for this long (Retry-After)."""
        self._paused_until = max(self._paused_until, _now() + min(seconds, LONGEST_SECONDS))

    def remember(self, error: SourceError) -> None:
        """Keep what went wrong last, for those who are refused later."""
        self._last = error

    @property
    def is_shut(self) -> bool:
        """Whether the breaker lets no one through."""
        return self.breaker.closed_for(_now()) is not None

    @asynccontextmanager
    async def turn(self, request: SearchRequest) -> AsyncGenerator[Permit]:
        """Wait for a turn within the request's time, and hold it.

        Raises:
            NotTried: the breaker is open, or the turn would come too late.
        """
        self._refuse(request)
        loop = asyncio.get_running_loop()
        if loop not in self._lanes:
            self._lanes[loop] = _Lane(self.limits)
        lane = self._lanes[loop]
        left = request.seconds_left
        if not left or lane.shortest_wait > left:
            raise self._too_late(left)
        scope = asyncio.timeout(None if math.isinf(left) else left)
        try:
            async with scope:
                await lane.enter(self)
        except TimeoutError:
            raise self._too_late(left) from None
        try:
            self._refuse(request)  # it may have failed while this one waited
            yield self.breaker.enter(_now())
        finally:
            lane.leave()

    def _too_late(self, left: float) -> NotTried:
        return NotTried(
            f"{self.name} was not tried: too many wait for it, and their turn does not come within {spoken(left)}",
            kind="rate",
        )

    @property
    def pause_left(self) -> float:
        """Seconds that the backend still wants to be left alone."""
        left = self._paused_until - _now()
        return left if left > _RESOLUTION else 0.0

    def _refuse(self, request: SearchRequest) -> None:
        shut = self.breaker.closed_for(_now())
        if shut is not None:
            last, kind = (str(self._last), self._last.kind) if self._last else ("", "upstream")
            when = f"it will be tried again in {spoken(shut)}" if shut else TRYING
            why = f"{self.name} is paused, {when}; its last error: {last}"
            raise NotTried(why, kind=kind, retry_after=shut)
        pause = self.pause_left
        if pause > min(self.limits.longest_wait_seconds, request.seconds_left):
            why = f"{self.name} requested a pause, it will be tried again in {spoken(pause)}"
            raise NotTried(why, kind="rate", retry_after=pause)


class _Lane:
    """The queue before a limiter in one event loop."""

    def __init__(self, limits: Limits) -> None:
        burst, self._rate = bucket(limits)
        self._burst = burst
        self._limiter = AsyncLimiter(burst, burst / self._rate)
        self._places = asyncio.Semaphore(limits.concurrency)
        self._waiting = 0

    @property
    def shortest_wait(self) -> float:
        """Seconds that a turn takes to come at least, by the rate alone."""
        return max(0.0, (self._waiting + 1 - self._burst) / self._rate)

    async def enter(self, limiter: RateLimiter) -> None:
        self._waiting += 1
        try:
            await self._places.acquire()
            try:
                await self._pace(limiter)
            except BaseException:  # whatever ended the wait, the caller's leaving included: no one holds this place
                self._places.release()
                raise
        finally:
            self._waiting -= 1

    async def _pace(self, limiter: RateLimiter) -> None:
        """Wait for the rate, and out every Retry-After that comes in the meantime."""
        while True:
            await asyncio.sleep(limiter.pause_left)
            await self._limiter.acquire()
            if not limiter.pause_left:
                return

    def leave(self) -> None:
        self._places.release()


class RateLimiters:
    """The limiters of all backends, by name."""

    def __init__(self) -> None:
        self._limiters: dict[str, RateLimiter] = {}

    def of(self, name: str, limits: Limits) -> RateLimiter:
        """The limiter of a backend; the limits of the first caller hold."""
        return self._limiters.setdefault(name, RateLimiter(name, limits))


def bucket(limits: Limits) -> tuple[float, float]:
    """Size and leak rate (requests a second) of a bucket that lets through at most `requests` in any `per_seconds`.

    A bucket of the size `requests` would let twice as many through in a row: a full one, and what leaks meanwhile.
    Half of them at once and the rest evenly spread is within the limit wherever the window begins.
    """
    if limits.requests < 1:
        return 1.0, limits.requests / limits.per_seconds
    whole = int(limits.requests)
    burst = max(1, whole // 2)
    return float(burst), (whole - burst + 1) / limits.per_seconds


def spoken(seconds: float) -> str:
    """A duration for a sentence, in the largest unit of which there are at least two."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.3g} s"


def _now() -> float:
    return asyncio.get_running_loop().time()
