"""What a source is, and the one boundary where whatever goes wrong in one becomes `SourceError`."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, runtime_checkable

from agent.errors import Failure, SourceError
from agent.evidence import Passage
from agent.plan import Filter
from agent.sanitize.text import whole
from agent.sources.deadline import within
from agent.trace import Cached

_MOST_CHARS: Final = {"id": 1_000, "source": 200, "title": 1_000, "text": 200_000, "url": 2_000, "date": 1_000}
"""Characters of each field of a passage. A longer one is cut; of an address or a date, a part is worth nothing."""
_WHOLE_ONLY: Final = frozenset({"url", "date"})


class Source(Protocol):
    """Web, news, arXiv, a corpus, a knowledge graph: all answer a query with passages, best first."""

    async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        """Give at most `limit` passages: a plain list, or `Hits` where there is more to say.

        Raises:
            SourceError: the source failed; `kind` says how.
        """
        ...


class Hits(list[Passage]):
    """Passages, best first, with how they were come by. A source that has nothing to add gives a plain list."""

    def __init__(
        self,
        passages: Iterable[Passage] = (),
        *,
        backend: str = "",
        notes: tuple[str, ...] = (),
        cached: Cached = "",
        credits: float = 0.0,
        usd: float = 0.0,
        failures: tuple[Failure, ...] = (),
    ) -> None:
        """Keep passages.

        Args:
            passages: best first.
            backend: which back end answered.
            notes: sentences for the trace, for example of a filter that could not be honoured.
            cached: whether this was found before: "" (no), "fresh", or "stale" where asking again failed.
            credits: what this one search cost, in the back end's own unit.
            usd: the same in money.
            failures: what failed before this answer came.
        """
        super().__init__(passages)
        self.backend = backend
        self.notes = notes
        self.cached: Cached = cached
        self.credits = credits
        self.usd = usd
        self.failures = failures

    def but(self, passages: Iterable[Passage]) -> "Hits":
        """Other passages that were come by in the same way."""
        return Hits(
            passages,
            backend=self.backend,
            notes=self.notes,
            cached=self.cached,
            credits=self.credits,
            usd=self.usd,
            failures=self.failures,
        )


@runtime_checkable
class Paid(Protocol):
    """A source whose searches cost something."""

    @property
    def credits_per_search(self) -> float:
        """The most that one search may cost."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A source that holds connections, files or processes."""

    async def aclose(self) -> None: ...


def credits_of(source: Source) -> float:
    """What one search of a source may cost; 0 for a source that says nothing about it."""
    return source.credits_per_search if isinstance(source, Paid) else 0.0


async def close_sources(sources: Iterable[Source]) -> None:
    """Close whatever the sources hold, each one once."""
    for source in {id(source): source for source in sources}.values():
        if isinstance(source, Closable):
            await source.aclose()


async def ask(source: Source, query: str, *, limit: int, seconds: float, filters: Sequence[Filter] = ()) -> Hits:
    """Ask one source, for at most `seconds`.

    Raises:
        SourceError: whatever went wrong in it.
    """
    scope = asyncio.timeout(seconds)
    try:
        with within(seconds):
            async with scope:
                found = await source.search(query, limit=limit, filters=filters)
        hits = as_hits(source, found)
        return hits.but(_bounded(passage) for passage in hits[:limit])
    except SourceError:
        raise
    except TimeoutError as error:
        why = f"no answer in {seconds:g} s" if scope.expired() else f"it timed out: {error}"
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


def as_hits(source: Source, found: list[Passage]) -> Hits:
    """What a source gave, as `Hits`. A plain list says nothing of its cost: it is what the source asks for a search."""
    return found if isinstance(found, Hits) else Hits(found, credits=credits_of(source))
