"""`WithPages`: a source whose best hits are read in full, so that the part that fits the query becomes the passage.

Only URLs that the source itself gave are fetched. A page that cannot be had costs nothing but a note.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.evidence import Passage
from agent.sources.base import Closable, SearchRequest, SearchResult, Source, credits_of
from agent.sources.pages.blocked import report_blocked
from agent.sources.pages.errors import PageError, PageErrorKind
from agent.sources.pages.fetch import Fetcher, WebPage
from agent.sources.pages.part import PART_CHARS, best_part

LEAST_CHARS: Final = 80
"""A part that is shorter says less than a snippet."""


SHARE: Final = 0.95
"""Of the time that the caller still waits: the rest is for what comes after."""

REST_SECONDS: Final = 0.15
"""The rest is at least so long, or half of the time: on a busy machine snippets are late by tens of milliseconds."""


_MAY_COME: Final = frozenset[PageErrorKind]({"slow", "unreachable"})
"""A page that failed so may be there at the next try."""


@dataclass(frozen=True)
class _Read:
    """A hit with a better text, or as it is and why."""

    hit: Passage
    why: str = ""
    late: bool = False


class WithPages:
    """A source that reads what it finds."""

    def __init__(
        self, source: Source, fetcher: Fetcher, *, pages: int = 3, seconds: float = 8.0, chars: int = PART_CHARS
    ) -> None:
        """Wrap a source.

        Args:
            source: searched first.
            fetcher: shared by all sources that read pages; closed with each of them, which does no harm.
            pages: how many of the best hits are read.
            seconds: for one whole search, the source's own time included, or less where the caller waits for less;
                what is not read by then stays a snippet.
            chars: of the part of a page that becomes the passage.
        """
        self._source = source
        self._fetcher = fetcher
        self._pages = pages
        self._seconds = seconds
        self._chars = chars

    @property
    def credits_per_search(self) -> float:
        """The price of the source; reading pages costs nothing."""
        return credits_of(self._source)

    async def search(self, request: SearchRequest) -> SearchResult:
        """Search, then read the best hits, all at the same time.

        Raises:
            SourceError: the source failed. A page that fails does not raise.
        """
        left = request.seconds_left
        before_rest = max(left / 2, min(SHARE * left, left - REST_SECONDS))
        end = asyncio.get_running_loop().time() + min(self._seconds, before_rest)
        found = await self._source.search(request)
        async with asyncio.TaskGroup() as group:
            tasks = {
                at: group.create_task(self._read(found.passages[at], request.query, end))
                for at in _wanted(found.passages, self._pages)
            }
        reads = {at: task.result() for at, task in tasks.items()}
        notes = [f"hit {at + 1} stayed a snippet: {read.why}" for at, read in reads.items() if read.why]
        late = any(read.late for read in reads.values())
        return replace(
            found,
            passages=tuple(reads[at].hit if at in reads else hit for at, hit in enumerate(found.passages)),
            notes=(*found.notes, *notes),
            incomplete=found.incomplete or late,
        )

    async def _read(self, hit: Passage, query: str, end: float) -> _Read:
        try:
            async with asyncio.timeout_at(end):
                page = await self._fetcher.page(hit.url)
                subject = page.title or hit.title
                part = await asyncio.to_thread(best_part, page.text, query, subject=subject, chars=self._chars)
        except PageError as error:
            report_blocked(error.kind)
            return _Read(hit, str(error), late=error.kind in _MAY_COME)
        except TimeoutError:
            return _Read(hit, "its page did not arrive in time", late=True)
        if len(part.text) < min(LEAST_CHARS, len(hit.text)):
            return _Read(hit, "its page holds hardly any text")
        return _Read(_improved(hit, page, part.text))

    async def aclose(self) -> None:
        """Close the source and the fetcher."""
        if isinstance(self._source, Closable):
            await self._source.aclose()
        await self._fetcher.aclose()


def _wanted(hits: Sequence[Passage], pages: int) -> list[int]:
    """Give the places of the first hits with a URL of their own."""
    first: dict[str, int] = {}
    for at, hit in enumerate(hits):
        if hit.url:
            first.setdefault(hit.url, at)
    return list(first.values())[:pages]


def _improved(hit: Passage, page: WebPage, text: str) -> Passage:
    """Put a page's text into a hit; what the source said of title and date counts more than what the page says."""
    return hit.model_copy(update={"text": text, "title": hit.title or page.title, "date": hit.date or page.date})
