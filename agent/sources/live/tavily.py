"""Tavily, through its own library: web, news and finance. The key is never left out, so no request goes out keyless.

The library builds the requests; they travel over the client that all backends share, which bounds answers and maps
every failure, its Retry-After included, before the library sees it.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Literal

import httpx2
from tavily import AsyncTavilyClient  # pyright: ignore[reportMissingTypeStubs]

from agent.errors import SourceErrorKind
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import ReadFilters, read_filters, unhonoured
from agent.sources.http import Api
from agent.sources.limits import Limits
from agent.sources.live.dates import iso_date, utc_now
from agent.sources.live.queries import cut
from agent.sources.live.reading import (
    ResultRow,
    Topic,
    bare_site,
    checked_key,
    cost,
    member,
    number,
    object_of,
    passages,
    plain,
    rows_of,
    text_of,
    url_of,
)

Depth = Literal["basic", "advanced", "fast", "ultra-fast"]

BASE: Final = "https://api.tavily.com"
HONOURS: Final = frozenset({"after", "before", "site", "not", "recent", "lang", "kind"})
LIMITS: Final = Limits(concurrency=4, requests=90, per_seconds=60.0)
"""A development key may ask 100 times a minute."""
NEWS_LIMITS: Final = Limits(concurrency=4, requests=90, per_seconds=60.0, keep_seconds=900.0)
USD_PER_CREDIT: Final = 0.008
"""Pay as you go; a plan is cheaper, and the first 1,000 credits of a month are free."""
MAX_QUERY: Final = 400
MAX_RESULTS: Final = 20
MAX_SITES: Final = 300
MAX_NOT_SITES: Final = 150
KINDS: Final[dict[int, SourceErrorKind]] = {432: "quota", 433: "quota"}
_TOPICS: Final = {"news": "news", "finance": "finance"}


class TavilySource:
    """Web pages or news from Tavily."""

    name = "tavily"
    HONOURS = HONOURS

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        key: str,
        base: str = BASE,
        topic: Topic = "web",
        depth: Depth = "basic",
        usd_per_credit: float = USD_PER_CREDIT,
        limits: Limits | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Ask Tavily.

        Args:
            client: shared; who made it closes it.
            key: tvly-…
            base: of the API.
            topic: what is searched, and the name of the source that passages carry.
            depth: of the search; advanced costs two credits, the others one.
            usd_per_credit: what a credit costs you.
            limits: for the guard around this source.
            now: the time that relative dates and filters count from.

        Raises:
            SetupError: there is no key.
        """
        key = checked_key(key, api="Tavily", get_one="https://app.tavily.com")
        api = Api(client, name=self.name, base=base, kinds=KINDS, secret=key)
        # The library writes the key into the headers of the client that it is given: that one is its own.
        own = httpx2.AsyncClient(transport=_Shared(api), base_url=api.base, trust_env=False)
        self._tavily: Any = AsyncTavilyClient(api_key=key, api_base_url=api.base, client=own)  # pyright: ignore[reportArgumentType]
        self._topic: Topic = topic
        self._depth: Depth = depth
        self._usd_per_credit = usd_per_credit
        self._now = now
        self.limits = limits or (NEWS_LIMITS if topic == "news" else LIMITS)

    @property
    def credits_per_search(self) -> float:
        return 2.0 if self._depth == "advanced" else 1.0

    async def search(self, request: SearchRequest) -> SearchResult:
        """Search once.

        Raises:
            SourceError: with its kind.
        """
        wanted = read_filters(request.filters)
        topic = "news" if self._topic == "news" else _TOPICS.get(wanted.kind, "general")
        honours = HONOURS - {"kind"} if wanted.kind not in {"", "general", topic} else HONOURS
        notes = unhonoured(request.filters, honours=honours, by=self.name)
        if request.limit < 1 or not request.query.strip():
            return SearchResult(backend=self.name, notes=notes, credits=0.0)
        data = object_of(
            await self._tavily.search(
                query=cut(request.query, MAX_QUERY),
                topic=topic,
                search_depth=self._depth,
                max_results=min(request.limit, MAX_RESULTS),
                include_usage=True,
                **self._conditions(wanted),
            ),
            by=self.name,
        )
        rows = [self._row(row, wanted) for row in rows_of(data, "results", by=self.name, needed=True)]
        credits = cost(member(data, "usage").get("credits"), otherwise=self.credits_per_search)
        return SearchResult(
            passages(rows, by=self.name, topic=self._topic, wanted=wanted, limit=request.limit),
            backend=self.name,
            notes=notes,
            credits=credits,
            usd=credits * self._usd_per_credit,
        )

    def _conditions(self, wanted: ReadFilters) -> dict[str, Any]:
        """The filters as Tavily's own parameters; what is None is not sent."""
        dated = wanted.after is not None or wanted.before is not None
        since = wanted.since(self._now().date()) if dated else None
        return {
            "time_range": None if dated else wanted.recent or None,
            "start_date": since.isoformat() if since else None,
            "end_date": wanted.before.isoformat() if wanted.before else None,
            "include_domains": [bare_site(site) for site in wanted.sites[:MAX_SITES]] or None,
            "exclude_domains": [bare_site(site) for site in wanted.not_sites[:MAX_NOT_SITES]] or None,
            "language": wanted.lang or None,
            "filter_by_language": True if wanted.lang else None,
        }

    def _row(self, row: dict[str, Any], wanted: ReadFilters) -> ResultRow:
        return ResultRow(
            title=plain(row.get("title")),
            text=text_of(row.get("content")),
            url=url_of(row.get("url")),
            date=iso_date(row.get("published_date"), now=self._now(), lang=wanted.lang),
            score=number(row.get("score")) or 0.0,
        )


class _Shared(httpx2.AsyncBaseTransport):
    """Sends the library's requests over the shared client, and gives it only answers that it can read: JSON objects."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = self._api.checked(await self._api.exchange(request))
        object_of(self._api.parse(answer), by=self._api.name)
        return httpx2.Response(200, content=answer.body)
