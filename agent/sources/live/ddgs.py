"""A search without a key: the library `ddgs` (the extra of this name) reads the result pages of search engines.

It scrapes: an engine may block this address, and no one owes it an answer. It brings its own HTTP client and blocks its
thread, so it has threads of its own, each bounded by the library's own time.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from importlib.util import find_spec
from typing import Any, Final

from agent.errors import SetupError, SourceError
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import read_filters, unhonoured
from agent.sources.limits import Limits
from agent.sources.live.dates import iso_date, utc_now
from agent.sources.live.queries import cut
from agent.sources.live.reading import ResultRow, Topic, passages, plain, site_operators, url_of

HONOURS: Final = frozenset({"site", "not", "recent"})
LIMITS: Final = Limits(concurrency=1, requests=1, per_seconds=3.0, timeout_seconds=12.0, tries=2)
"""Engines block an address that asks them often."""
NEWS_LIMITS: Final = Limits(
    concurrency=1, requests=1, per_seconds=3.0, timeout_seconds=12.0, tries=2, keep_seconds=900.0
)
ENGINES: Final = {"web": "duckduckgo,brave,mojeek", "news": "bing,yahoo"}
ENGINE_SECONDS: Final = 5
"""One engine; of several, at most two are waited for one after the other."""
THREADS: Final = 2
MAX_QUERY: Final = 400
MAX_RESULTS: Final = 20
_NOTHING: Final = "No results found."


class DdgsSource:
    """Web pages or news from search engines that are read by `ddgs`."""

    name = "ddgs"
    HONOURS = HONOURS

    def __init__(
        self, *, topic: Topic = "web", limits: Limits | None = None, now: Callable[[], datetime] = utc_now
    ) -> None:
        """Take note of what is searched; nothing is sent yet.

        Args:
            topic: what is searched, and the name of the source that passages carry.
            limits: for the guard around this source.
            now: the time that relative dates count from.

        Raises:
            SetupError: the library is missing.
        """
        if find_spec("ddgs") is None:
            raise SetupError("the backend ddgs needs its library: pip install 'cairn-search[ddgs]'")
        self._topic: Topic = topic
        self._now = now
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ddgs")
        self.limits = limits or (NEWS_LIMITS if topic == "news" else LIMITS)

    @property
    def credits_per_search(self) -> float:
        return 0.0

    async def search(self, request: SearchRequest) -> SearchResult:
        """Search once. An empty result may mean that engines block this address; a note says so.

        Raises:
            SourceError: with its kind.
        """
        wanted = read_filters(request.filters)
        honours = HONOURS | ({"kind"} if wanted.kind in {"general", self._topic} else set[str]())
        notes = unhonoured(request.filters, honours=honours, by=self.name)
        if request.limit < 1 or not request.query.strip():
            return SearchResult(backend=self.name, notes=notes)
        operators = site_operators(wanted, room=MAX_QUERY // 2)
        text = f"{cut(request.query, MAX_QUERY - len(operators) - 1)} {operators}".strip()
        period = wanted.recent[:1] or None
        loop = asyncio.get_running_loop()
        rows = await loop.run_in_executor(self._threads, self._found, text, min(request.limit, MAX_RESULTS), period)
        found = passages(self._rows(rows), by=self.name, topic=self._topic, wanted=wanted, limit=request.limit)
        if not found:
            notes += ("ddgs found nothing: there is nothing, or the engines block this address",)
        return SearchResult(found, backend=self.name, notes=notes)

    async def aclose(self) -> None:
        """Wait for no thread; each ends within its own time."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _found(self, text: str, limit: int, period: str | None) -> list[dict[str, Any]]:
        """Search in this thread."""
        from ddgs import DDGS  # pyright: ignore[reportUnknownVariableType]
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

        client: Any = DDGS(timeout=ENGINE_SECONDS)
        search = client.news if self._topic == "news" else client.text
        try:
            return search(text, max_results=limit, timelimit=period, backend=ENGINES[self._topic])
        except TimeoutException as error:
            raise SourceError("ddgs had no answer from an engine in time", kind="timeout") from error
        except RatelimitException as error:
            raise SourceError(f"ddgs was refused: {str(error)[:160]}", kind="rate") from error
        except DDGSException as error:
            if str(error) == _NOTHING:
                return []
            raise SourceError(f"ddgs failed: {str(error)[:160]}") from error

    def _rows(self, rows: list[dict[str, Any]]) -> Iterator[ResultRow]:
        for row in rows:
            yield ResultRow(
                title=plain(row.get("title")),
                text=plain(row.get("body")),
                url=url_of(row.get("href") or row.get("url")),
                date=iso_date(row.get("date"), now=self._now()),
            )
