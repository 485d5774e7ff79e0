"""One backend behind its limits: in its turn, for a bounded time, again where that may help, and not while it is down.

Whatever it fails with is reported: a `Failure` for every try, beside the answer or in the error.

What an error means for the breaker:

* an answer, `bad_query` and `parse`: the backend is alive; the row of failures ends
* `rate`, `upstream`, `timeout`: one more in the row; a `timeout` only in part where the caller had less than two
  seconds for it
* `quota`: opens at once, until the Retry-After or for an hour; `auth`: opens at once, for ten minutes
* the caller left: nothing
"""

import asyncio
import random
from collections.abc import AsyncIterable
from dataclasses import replace
from typing import Final, Literal

import stamina

from agent.errors import Failure, SourceError
from agent.outbound.retries import log_retries_without_words
from agent.sources.base import Closable, SearchRequest, SearchResult, Source, ask, credits_of
from agent.sources.limits import Limits
from agent.sources.resilience.breaker import Permit
from agent.sources.resilience.limiter import LONGEST_SECONDS, NotTried, RateLimiter

AGAIN: Final = frozenset({"rate", "upstream", "timeout"})
"""Kinds of failure after which a try may help."""
QUOTA_SECONDS: Final = 3600.0
AUTH_SECONDS: Final = 600.0
FAIR_SECONDS: Final = 2.0
"""A backend that had less than these, and less than its own time, is not for sure to blame for a timeout."""

log_retries_without_words()


class Guarded:
    """A backend behind its limiter."""

    def __init__(self, source: Source, *, name: str, limits: Limits, limiter: RateLimiter | None = None) -> None:
        """Guard `source`.

        Args:
            source: makes exactly one attempt a call.
            name: of the backend, for failures.
            limits: how many requests it takes.
            limiter: shared with all others that use the same backend; its own where left out.
        """
        self.name = name
        self.limits = limits
        self.limiter = limiter or RateLimiter(name, limits)
        self._source = source
        self._open = True

    @property
    def credits_per_search(self) -> float:
        """Of one answer: a try that failed is taken to cost nothing."""
        return credits_of(self._source)

    async def search(self, request: SearchRequest) -> SearchResult:
        """Ask, and ask again where that may help, as long as the caller's time allows.

        Raises:
            SourceError: of the last try; `failures` has one entry for each try.
        """
        failures: list[Failure] = []
        clock = asyncio.get_running_loop().time
        async for attempt in self._attempts(request):
            with attempt:
                started = clock()
                try:
                    found = await self._try(request)
                except SourceError as error:
                    took = clock() - started
                    failures += error.failures or [Failure(self.name, error.kind, str(error), took)]
                    error_type = NotTried if isinstance(error, NotTried) else SourceError
                    raise error_type(
                        str(error), kind=error.kind, retry_after=error.retry_after, failures=tuple(failures)
                    ) from error
                return replace(found, backend=found.backend or self.name, failures=(*failures, *found.failures))
        raise AssertionError("the last attempt returns or raises")

    def _attempts(self, request: SearchRequest) -> AsyncIterable[stamina.Attempt]:
        usual = self.limits.wait_seconds

        def pause_after(error: Exception) -> Literal[False] | float:
            """Seconds until the next try, or no next try: where it cannot help, and where no one would wait for it."""
            nonlocal usual
            if not isinstance(error, SourceError) or isinstance(error, NotTried) or error.kind not in AGAIN:
                return False
            longest = self.limits.longest_wait_seconds
            pause = max(min(usual + random.uniform(0, self.limits.wait_seconds), longest), error.retry_after or 0.0)
            usual *= 2
            too_long = pause > longest or pause >= request.seconds_left
            return False if too_long or self.limiter.is_shut else pause

        return stamina.retry_context(on=pause_after, attempts=self.limits.tries, timeout=None)

    async def _try(self, request: SearchRequest) -> SearchResult:
        async with self.limiter.turn(request) as turn:
            seconds = min(self.limits.timeout_seconds, request.seconds_left)
            try:
                found = await ask(self._source, request, seconds=seconds)
            except SourceError as error:
                self._judge(error, turn, seconds=seconds)
                raise
            except BaseException:  # the caller left
                self.limiter.breaker.left(turn)
                raise
            self.limiter.breaker.answered(turn)
            return found

    def _judge(self, error: SourceError, turn: Permit, *, seconds: float) -> None:
        """Apply what this failure means to the limiter."""
        now = asyncio.get_running_loop().time()
        breaker = self.limiter.breaker
        match error.kind:
            case "bad_query" | "parse":
                breaker.answered(turn)
            case "quota" | "auth":
                self.limiter.remember(error)
                usual = QUOTA_SECONDS if error.kind == "quota" else AUTH_SECONDS
                pause = usual if error.retry_after is None else error.retry_after
                breaker.open(turn, now, seconds=min(pause, LONGEST_SECONDS))
            case "rate" | "upstream" | "timeout":
                self.limiter.remember(error)
                if error.retry_after:
                    self.limiter.pause(error.retry_after)
                fair = min(self.limits.timeout_seconds, FAIR_SECONDS)
                breaker.failed(turn, now, weight=min(1.0, seconds / fair) if error.kind == "timeout" else 1.0)

    async def aclose(self) -> None:
        if self._open and isinstance(self._source, Closable):
            self._open = False
            await self._source.aclose()
