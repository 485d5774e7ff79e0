"""Resilience, once, around every source: guard, fallback and cache around backends, the same around a plug-in."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from agent.sources.base import Source
from agent.sources.limits import Limits
from agent.sources.resilience.cached import Cached
from agent.sources.resilience.fallback import Fallback
from agent.sources.resilience.guard import Guarded
from agent.sources.resilience.limiter import RateLimiters
from agent.sources.resilience.store import AnswerStore


class Backend(Source, Protocol):
    """It makes exactly one attempt a call, and says how many requests it takes."""

    @property
    def name(self) -> str: ...
    @property
    def limits(self) -> Limits: ...


PLUGIN: Final = Limits(concurrency=16, requests=50, keep_seconds=0.0)
"""For a plug-in that says nothing of itself. It may well be a file on this machine, so it takes more requests than a
stranger's server would; and only its author knows how long an answer holds, so none is kept."""


def resilient_plugin(name: str, source: Source, *, limits: Limits, store: AnswerStore | None) -> Cached:
    """Guard other people's source, and share the calls of equal queries; closing it closes the source and the store.

    Args:
        name: of the plug-in, for failures and as part of what is kept.
        source: makes one attempt a call.
        limits: how many requests it takes.
        store: where answers are kept, if `limits` keep them for any time; None: nowhere.
    """
    return Cached(Guarded(source, name=name, limits=limits), name=name, store=store, limits=limits)


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
    now: Callable[[], float] = time.time,
) -> Cached:
    """Make one source of its backends; closing it closes them and the store. With other backends it requests again.

    Args:
        name: of the source; its answers are kept under it, for the shortest time that one of its backends says.
        backends: in the order in which they are tried.
        store: where answers are kept; None: nowhere.
        enough: with fewer passages than this from one backend, the next one is tried too.
        limits: in place of what a backend says of itself, by its name.
        limiters: shared with all other sources, so that a backend that several of them share gets no more requests.
        around: put between the backends and the cache, for example to read the pages of hits.
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
    variant = "+".join(guard.name for guard in guarded) + (" around" if around else "")
    found = around(found) if around else found
    return Cached(found, name=name, store=store, limits=shortest, variant=variant, now=now)
