"""What a source is, and the one boundary where whatever goes wrong in one becomes `SourceError`."""

import asyncio
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol, runtime_checkable

from agent.errors import Failure, SourceError
from agent.evidence import Passage
from agent.plan import Filter
from agent.sanitize.text import whole
from agent.sources.limits import Limits
from agent.trace import Cached

SPARE_SECONDS: Final = 0.05
"""A deadline comes this much earlier (at most a twentieth of the time left), so that a source can report failures."""
_MOST_CHARS: Final = {"id": 1_000, "source": 200, "title": 1_000, "text": 200_000, "url": 2_000, "date": 1_000}
"""Characters of each field of a passage. A longer one is cut; of an address or a date, a part is worth nothing."""
_WHOLE_ONLY: Final = frozenset({"url", "date"})


@dataclass(frozen=True)
class SearchRequest:
    """One search of one source. A source that wraps another passes it on, or a copy made with `dataclasses.replace`."""

    query: str
    limit: int
    """The most passages to return."""
    filters: tuple[Filter, ...] = ()
    question: str = ""
    """The user's question, which the query helps to answer; empty where it is not known."""
    entities: tuple[str, ...] = ()
    """What a structured query of the policy names."""
    relations: tuple[str, ...] = ()
    """The relations that a structured query of the policy names."""
    deadline: float = math.inf
    """A moment of the running event loop's clock. `ask` ends the search soon after it; a source need not check it."""
    probe: bool = False
    """Only whether the source answers matters: what costs more than the search itself is left out."""

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return math.inf if self.deadline == math.inf else max(0.0, self.deadline - asyncio.get_running_loop().time())

    def within(self, seconds: float) -> "SearchRequest":
        """The same request with at most `seconds` left, less a little to spare; never later than before."""
        left = min(seconds, self.seconds_left)
        now = asyncio.get_running_loop().time()
        return replace(self, deadline=now + left - min(SPARE_SECONDS, left / 20))


@dataclass(frozen=True)
class SearchResult:
    """What a search found, and how."""

    passages: tuple[Passage, ...] = ()
    """Best first."""
    backend: str = ""
    """The backend that answered."""
    notes: tuple[str, ...] = ()
    """Sentences for the trace, for example about a filter that the backend does not support."""
    cached: Cached = ""
    """Whether a cache answered: "" (no), "fresh", or "stale" where a new search failed."""
    credits: float | None = None
    """What this search cost, in the backend's unit; None: the source's `credits_per_search`, which `ask` fills in."""
    usd: float = 0.0
    """The same in money."""
    failures: tuple[Failure, ...] = ()
    """What failed before this result came."""
    incomplete: bool = False
    """Some of it was late or could not be reached, so the same search may soon find more: it is kept for a short time.
    """
    lost: tuple[str, ...] = ()
    """Of several sources that were fused, the names of those that gave nothing because they failed."""


class Source(Protocol):
    """Web, news, arXiv, a corpus, a knowledge graph: each finds passages for a query."""

    async def search(self, request: SearchRequest) -> SearchResult:
        """Return at most `request.limit` passages, best first.

        Raises:
            SourceError: the source failed; `kind` says how.
        """
        ...


class LibrarySource(Source, Protocol):
    """What searches files that may change from one request to the next."""

    @property
    def state(self) -> str:
        """A hash of all that it can find."""
        ...


@runtime_checkable
class Paid(Protocol):
    """A source whose searches cost something."""

    @property
    def credits_per_search(self) -> float:
        """The most that one search may cost."""
        ...


@runtime_checkable
class Keeping(Protocol):
    """A source whose answers hold for a time of its own."""

    @property
    def keep_seconds(self) -> float:
        """How long an answer may be given again."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A source that holds connections, files or processes."""

    async def aclose(self) -> None: ...


@runtime_checkable
class Ailing(Protocol):
    """A source that answers, and may have a problem that a person should know of."""

    @property
    def problem(self) -> str:
        """A sentence; empty where all is well."""
        ...


def problems_of(sources: Iterable[Source]) -> list[str]:
    """What the sources say is wrong with them, each sentence once."""
    return list(dict.fromkeys(source.problem for source in sources if isinstance(source, Ailing) and source.problem))


def credits_of(source: Source) -> float:
    """What one search of a source may cost; 0 for a source that says nothing about it."""
    return source.credits_per_search if isinstance(source, Paid) else 0.0


def keep_seconds_of(source: Source) -> float:
    """How long what a source found may be used again; as long as usual for a source that says nothing about it."""
    return source.keep_seconds if isinstance(source, Keeping) else Limits().keep_seconds


async def close_sources(sources: Iterable[Source]) -> None:
    """Close whatever the sources hold, each one once."""
    for source in {id(source): source for source in sources}.values():
        if isinstance(source, Closable):
            await source.aclose()


class OwningSource:
    """A source that also closes what was opened for it, for example a client that several sources share."""

    def __init__(self, source: Source, *resources: Closable) -> None:
        """Own `resources`; closing one of them twice must do no harm."""
        self._source = source
        self._resources = resources

    @property
    def credits_per_search(self) -> float:
        return credits_of(self._source)

    @property
    def keep_seconds(self) -> float:
        return keep_seconds_of(self._source)

    async def search(self, request: SearchRequest) -> SearchResult:
        return await self._source.search(request)

    async def aclose(self) -> None:
        await close_sources([self._source])
        for resource in self._resources:
            await resource.aclose()


async def ask(source: Source, request: SearchRequest, *, seconds: float) -> SearchResult:
    """Search one source for at most `seconds`, and no longer than the request's own deadline.

    The result has bounded passages, and its credits are known.

    Raises:
        SourceError: whatever went wrong in it.
    """
    seconds = min(seconds, request.seconds_left)
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            found = await source.search(request.within(seconds))
        return replace(
            found,
            passages=tuple(_bounded(passage) for passage in found.passages[: request.limit]),
            credits=credits_of(source) if found.credits is None else found.credits,
        )
    except SourceError:
        raise
    except TimeoutError as error:
        why = f"no answer in {round(seconds, 2):g} s" if scope.expired() else f"it timed out: {error}"
        raise SourceError(why, kind="timeout") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise SourceError("the source gave up on itself") from error
    except Exception as error:  # third-party code raises anything
        raise SourceError(f"{type(error).__name__}: {error}") from error


def _bounded(passage: Passage) -> Passage:
    """The passage as every encoder takes it and at a length that can be read: a page may hold anything."""
    fields = {name: _field(name, getattr(passage, name)) for name in _MOST_CHARS}
    changed = {name: text for name, text in fields.items() if text != getattr(passage, name)}
    return passage.model_copy(update=changed) if changed else passage


def _field(name: str, text: str) -> str:
    most = _MOST_CHARS[name]
    if len(text) > most:
        text = "" if name in _WHOLE_ONLY else text[: most - 1] + "…"
    return whole(text)


def named(name: str, error: SourceError) -> str:
    """What a source failed with, with its name before it; a sentence that has it already keeps it once."""
    said = str(error)
    return said if re.match(rf"{re.escape(name)}\b", said) else f"{name}: {said}"
