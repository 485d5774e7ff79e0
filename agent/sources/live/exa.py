"""Exa: web pages and news by meaning, with the sentences of each page that fit the query."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import httpx2

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
    member,
    number,
    object_of,
    passages,
    plain,
    rows_of,
    texts,
    url_of,
)

BASE: Final = "https://api.exa.ai"
HONOURS: Final = frozenset({"after", "before", "site", "not", "recent", "kind"})
LIMITS: Final = Limits(concurrency=4, requests=5.0, per_seconds=1.0)
NEWS_LIMITS: Final = Limits(concurrency=4, requests=5.0, per_seconds=1.0, keep_seconds=900.0)
USD_PER_CREDIT: Final = 0.007
"""Pay as you go: 7 dollars for 1,000 searches of up to ten results, with their contents."""
MAX_QUERY: Final = 1_000
MAX_RESULTS: Final = 10
"""More are billed one by one."""
MAX_SITES: Final = 100
_CATEGORIES: Final = {"news": "news", "science": "research paper", "finance": "financial report"}


class ExaSource:
    """Web pages or news from Exa."""

    name = "exa"
    HONOURS = HONOURS

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        key: str,
        base: str = BASE,
        topic: Topic = "web",
        usd_per_credit: float = USD_PER_CREDIT,
        limits: Limits | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Ask Exa.

        Args:
            client: shared; who made it closes it.
            key: of the account.
            base: of the API.
            topic: what is searched, and the name of the source that passages carry.
            usd_per_credit: what a search costs you, where an answer does not state its price.
            limits: for the guard around this source.
            now: the time that relative dates and filters count from.

        Raises:
            SetupError: there is no key.
        """
        key = checked_key(key, api="Exa", get_one="https://dashboard.exa.ai/api-keys")
        self._api = Api(client, name=self.name, base=base, headers={"x-api-key": key}, secret=key)
        self._topic: Topic = topic
        self._usd_per_credit = usd_per_credit
        self._now = now
        self.limits = limits or (NEWS_LIMITS if topic == "news" else LIMITS)

    @property
    def credits_per_search(self) -> float:
        return 1.0

    async def search(self, request: SearchRequest) -> SearchResult:
        """Search once.

        Raises:
            SourceError: with its kind.
        """
        wanted = read_filters(request.filters)
        category = "news" if self._topic == "news" else _CATEGORIES.get(wanted.kind)
        other_kind = self._topic == "news" and wanted.kind not in {"", "general", "news"}
        notes = unhonoured(request.filters, honours=HONOURS - {"kind"} if other_kind else HONOURS, by=self.name)
        if request.limit < 1 or not request.query.strip():
            return SearchResult(backend=self.name, notes=notes, credits=0.0)
        body = {
            "query": cut(request.query, MAX_QUERY),
            "type": "auto",
            "numResults": min(request.limit, MAX_RESULTS),
            "category": category,
            "contents": {"highlights": True},
            **self._conditions(wanted),
        }
        data = object_of(await self._api.post("/search", body), by=self.name)
        rows = [self._row(row) for row in rows_of(data, "results", by=self.name, needed=True)]
        stated = number(member(data, "costDollars").get("total"))
        return SearchResult(
            passages(rows, by=self.name, topic=self._topic, wanted=wanted, limit=request.limit),
            backend=self.name,
            notes=notes,
            credits=1.0,
            usd=self._usd_per_credit if stated is None or stated < 0 else stated,
        )

    def _conditions(self, wanted: ReadFilters) -> dict[str, object]:
        """The filters as Exa's own parameters; what is None is not sent."""
        since = wanted.since(self._now().date())
        return {
            "startPublishedDate": f"{since}T00:00:00.000Z" if since else None,
            "endPublishedDate": f"{wanted.before}T23:59:59.999Z" if wanted.before else None,
            "includeDomains": [bare_site(site) for site in wanted.sites[:MAX_SITES]] or None,
            "excludeDomains": [bare_site(site) for site in wanted.not_sites[:MAX_SITES]] or None,
        }

    def _row(self, row: dict[str, Any]) -> ResultRow:
        return ResultRow(
            title=plain(row.get("title")),
            text=" … ".join(texts(row.get("highlights"))) or plain(row.get("text")),
            url=url_of(row.get("url")),
            date=iso_date(row.get("publishedDate"), now=self._now()),
            score=number(row.get("score")) or 0.0,
        )
