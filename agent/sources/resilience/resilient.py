"""Resilience, once, around every source: guard, fallback and cache around backends, the same around a plug-in."""

import asyncio
import random
import time
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, Protocol

import stamina

from agent.errors import Failure, SourceError, SourceErrorKind
from agent.evidence import Passage
from agent.outbound.retries import log_retries_without_words
from agent.sources.base import Closable, SearchRequest, SearchResult, Source, ask, close_sources, credits_of, named
from agent.sources.limits import Limits
from agent.sources.resilience.breaker import Permit
from agent.sources.resilience.cached import Cached
from agent.sources.resilience.limiter import LONGEST_SECONDS, NotTried, RateLimiter, RateLimiters
from agent.sources.resilience.store import AnswerStore

LONGEST_SHARE_SECONDS: Final = 60.0
"""That one of several backends may use, also where the caller has longer."""
TELLING: Final[Sequence[SourceErrorKind]] = ("auth", "quota", "rate", "timeout", "upstream", "parse", "bad_query")
"""Which kind names the failure of several backends: first what a person must fix, last what the query is to blame for,
since a query is only bad where every backend that failed says so."""

AGAIN: Final = frozenset({"rate", "upstream", "timeout"})
"""Kinds of failure after which a try may help."""
QUOTA_SECONDS: Final = 3600.0
AUTH_SECONDS: Final = 600.0
FAIR_SECONDS: Final = 2.0
"""A backend that had less than these, and less than its own time, is not for sure to blame for a timeout."""

log_retries_without_words()


class Backend(Source, Protocol):
    """It makes exactly one attempt a call, and says how many requests it takes."""

    @property
    def name(self) -> str: ...
    @property
    def limits(self) -> Limits: ...


PLUGIN: Final = Limits(concurrency=16, requests=50, keep_seconds=0.0)
"""For a plug-in that says nothing of itself. It may well be a file on this machine, so it takes more requests than a
stranger's server would; and only its author knows how long an answer holds, so none is kept."""


def resilient_plugin(
    name: str, source: Source, *, limits: Limits, store: AnswerStore | None, variant: str = "", whole: bool = True
) -> Cached:
    """Guard other people's source, and share the calls of equal queries; closing it closes the source and the store.

    Args:
        name: of the plug-in, for failures and as part of what is kept.
        source: makes one attempt a call.
        limits: how many requests it takes.
        store: where answers are kept, if `limits` keep them for any time; None: nowhere.
        variant: its options; with others it is searched again.
        whole: it may read more of a request than the query.
    """
    guarded = Guarded(source, name=name, limits=limits)
    return Cached(guarded, name=name, store=store, limits=limits, variant=variant, whole=whole)


def limits_of(source: Source) -> Limits:
    """What a plug-in says of itself in `limits`, else the defaults for one."""
    limits: object = getattr(source, "limits", None)
    return limits if isinstance(limits, Limits) else PLUGIN


def resilient(
    name: str,
    backends: Sequence[Backend],
    *,
    store: AnswerStore | None,
    enough: int = 1,
    limits: Mapping[str, Limits] | None = None,
    limiters: RateLimiters | None = None,
    around: Callable[[Source], Source] | None = None,
    variant: str = "",
    now: Callable[[], float] = time.time,
) -> Cached:
    """Make one source of its backends; closing it closes them and the store.

    With other backends, the same ones elsewhere, or more of them needed, it requests again.

    Args:
        name: of the source; its answers are kept under it, for the shortest time that one of its backends says.
        backends: in the order in which they are tried.
        store: where answers are kept; None: nowhere.
        enough: with fewer passages than this from one backend, the next one is tried too.
        limits: in place of what a backend says of itself, by its name.
        limiters: shared with all other sources, so that a backend that several of them share gets no more requests.
        around: put between the backends and the cache, for example to read the pages of hits.
        variant: what else its answers depend on, for example where the backends are, or how many pages are read.
        now: seconds since 1970, for the age of what is kept.
    """
    limiters = RateLimiters() if limiters is None else limiters
    guarded: list[Guarded] = []
    for backend in backends:
        wanted = limits.get(backend.name, backend.limits) if limits else backend.limits
        limiter = limiters.of(backend.name, wanted)
        guarded.append(Guarded(backend, name=backend.name, limits=wanted, limiter=limiter))
    shortest = min(guarded, key=lambda guard: guard.limits.keep_seconds).limits
    found: Source = Fallback(name, guarded, enough=enough)
    names = "+".join(guard.name for guard in guarded)
    whole = f"{names} enough {enough}{' around' if around else ''} {variant}"
    found = around(found) if around else found
    return Cached(found, name=name, store=store, limits=shortest, variant=whole, now=now)


class Guarded:
    """A backend behind its limiter.

    It is called in its turn, for a bounded time, again where that may help, and not while it is down. Whatever it fails
    with is reported: a `Failure` for every try, beside the answer or in the error. What an error means for the breaker:

    * an answer, `bad_query` and `parse`: the backend is alive; the row of failures ends
    * `rate`, `upstream`, `timeout`: one more in the row; a `timeout` only in part where the caller had less than two
      seconds for it
    * `quota`: opens at once, until the Retry-After or for an hour; `auth`: opens at once, for ten minutes
    * the caller left: nothing
    """

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
                    raise error.after(tuple(failures), credits=error.credits, usd=error.usd) from error
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


class NamedSource(Source, Protocol):
    """A source with a name for failures."""

    @property
    def name(self) -> str: ...


class Fallback:
    """The first backend that has enough answers; what several found is put together without doubles.

    Where none found anything and one failed, the whole has failed: that one might have had an answer.

    It neither retries nor waits. Time is shared: a backend may use the n-th part of what is left of the caller's time,
    where n counts it and those that have not been tried yet. What one leaves over is the next one's, and the last one
    may use all: however the first ones hang, each one that is behind them is still tried. Where there is no deadline,
    each has a minute.
    """

    def __init__(self, name: str, backends: Sequence[NamedSource], *, enough: int = 1) -> None:
        """Ask `backends` in their order.

        Args:
            name: of the whole, for sentences.
            backends: first choice first.
            enough: with fewer passages than this the next one is tried too; 0: any answer is enough.
        """
        if not backends:
            raise ValueError(f"{name} has no backend")
        self.name = name
        self._backends = tuple(backends)
        self._enough = enough

    @property
    def credits_per_search(self) -> float:
        """All of them, where an answer may be too little; else the dearest."""
        credits = [credits_of(backend) for backend in self._backends]
        return sum(credits) if self._enough else max(credits)

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give at most `limit` passages; what failed on the way comes with them.

        Raises:
            SourceError: one failed, and no other that there was time for found anything.
        """
        answers: list[tuple[str, SearchResult]] = []
        errors: list[tuple[str, SourceError]] = []
        failures: list[Failure] = []
        for at, backend in enumerate(self._backends):
            left = request.seconds_left
            if at and not left:
                break
            share = min(left / (len(self._backends) - at), LONGEST_SHARE_SECONDS)
            try:
                answer = await ask(backend, request, seconds=share)
            except SourceError as error:
                errors.append((backend.name, error))
                failures += error.failures or [Failure(backend.name, error.kind, str(error))]
                continue
            answers.append((backend.name, answer))
            failures += answer.failures
            if sum(len(found.passages) for _, found in answers) >= min(self._enough, request.limit):
                break
        if errors and not any(answer.passages for _, answer in answers):
            raise _failed(errors, dict(answers), tuple(failures))
        return _together([answer for _, answer in answers], limit=request.limit, failures=tuple(failures))

    async def aclose(self) -> None:
        await close_sources(self._backends)


def _failed(
    errors: Sequence[tuple[str, SourceError]], empty: Mapping[str, SearchResult], failures: tuple[Failure, ...]
) -> SourceError:
    """What the whole fails with; `empty` are the answers that found nothing."""
    waits = [error.retry_after for _, error in errors if error.retry_after is not None]
    return SourceError(
        "; ".join([*(named(name, error) for name, error in errors), *(f"{name} found nothing" for name in empty)]),
        kind=next(kind for kind in TELLING if any(error.kind == kind for _, error in errors)),
        retry_after=min(waits, default=None),
        failures=failures,
        credits=sum(answer.credits or 0.0 for answer in empty.values()),
        usd=sum(answer.usd for answer in empty.values()),
    )


def _together(answers: Sequence[SearchResult], *, limit: int, failures: tuple[Failure, ...]) -> SearchResult:
    """One list in the order in which they were tried, without what an earlier one found already."""
    passages: list[Passage] = []
    for answer in answers:
        there = {_place(passage) for passage in passages}
        passages += [passage for passage in answer.passages if _place(passage) not in there]
    if len(answers) > 1:
        passages = [passage.model_copy(update={"rank": rank}) for rank, passage in enumerate(passages, start=1)]
    found = [answer.backend for answer in answers if answer.passages] or [answer.backend for answer in answers]
    return SearchResult(
        tuple(passages[:limit]),
        backend="+".join(dict.fromkeys(found)),
        notes=tuple(dict.fromkeys(note for answer in answers for note in answer.notes)),
        credits=sum(answer.credits or 0.0 for answer in answers),
        usd=sum(answer.usd for answer in answers),
        failures=failures,
        incomplete=any(answer.incomplete for answer in answers),
    )


def _place(passage: Passage) -> str:
    """The same page under http and https, with and without www, is one page; without an address its text decides."""
    if not passage.url:
        return passage.text
    bare = passage.url.partition("#")[0].partition("://")[2].removeprefix("www.").rstrip("/")
    return bare or passage.url
