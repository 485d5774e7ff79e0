"""GNews (gnews.io): news only. Its query language wants quoting, its quota ends at midnight UTC."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx2

from agent.errors import SourceError
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import ReadFilters, read_filters, unhonoured
from agent.sources.http import Api, ApiAnswer, sentence_of
from agent.sources.limits import Limits
from agent.sources.live.dates import iso_date, utc_now
from agent.sources.live.queries import telling
from agent.sources.live.reading import ResultRow, checked_key, object_of, passages, plain, rows_of, url_of

BASE: Final = "https://gnews.io"
HONOURS: Final = frozenset({"after", "before", "not", "recent", "lang", "kind"})
LIMITS: Final = Limits(concurrency=1, requests=1, per_seconds=1.1, keep_seconds=900.0)
"""The free plan may ask once a second and 100 times a day."""
USD_PER_CREDIT: Final = 0.0
"""The free plan; a paid one costs by the month, so its price for one request is for you to say."""
MAX_QUERY: Final = 200
MAX_RESULTS: Final = 100
_KINDS: Final = {"", "general", "news"}
_TERM: Final = re.compile(r'"[^"]+"|“[^”]+”|\S+')
_BRACKETS: Final = '()[]{}"“”.,;:!?'
_CUT_OFF: Final = re.compile(r"\s*(?:\.{3}|…)?\s*\[\+?\d+ chars?\]\s*$")


class GNewsSource:
    """News from gnews.io."""

    name = "gnews"
    HONOURS = HONOURS

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        key: str,
        base: str = BASE,
        max_results: int = MAX_RESULTS,
        usd_per_credit: float = USD_PER_CREDIT,
        limits: Limits = LIMITS,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Ask GNews.

        Args:
            client: shared; who made it closes it.
            key: of the account.
            base: of the API.
            max_results: never ask for more; the plan has its own bound.
            usd_per_credit: what a request costs you.
            limits: for the guard around this source.
            now: the time that filters and the quota's end count from.

        Raises:
            SetupError: there is no key.
        """
        key = checked_key(key, api="GNews", get_one="https://gnews.io")
        self._api = Api(client, name=self.name, base=base, headers={"X-Api-Key": key}, secret=key)
        self._max_results = min(max(1, max_results), MAX_RESULTS)
        self._usd_per_credit = usd_per_credit
        self._now = now
        self.limits = limits

    @property
    def credits_per_search(self) -> float:
        return 1.0

    async def search(self, request: SearchRequest) -> SearchResult:
        """Search once.

        Raises:
            SourceError: with its kind.
        """
        wanted = read_filters(request.filters)
        honours = HONOURS if wanted.kind in _KINDS else HONOURS - {"kind"}
        notes = unhonoured(request.filters, honours=honours, by=self.name)
        text = query_text(request.query)
        if request.limit < 1 or not text:
            return SearchResult(backend=self.name, notes=notes, credits=0.0)
        since = wanted.since(self._now().astimezone(UTC).date())
        params = {
            "q": text,
            "in": "title,description,content",
            "lang": wanted.lang or None,
            "max": min(request.limit, self._max_results),
            "from": f"{since}T00:00:00Z" if since else None,
            "to": f"{wanted.before}T23:59:59Z" if wanted.before else None,
            "sortby": "relevance",
        }
        answer = await self._api.send("GET", "/api/v4/search", params=params)
        data = object_of(self._api.parse(self._api.checked(self._with_quota(answer))), by=self.name)
        rows = [self._row(row, wanted) for row in rows_of(data, "articles", by=self.name, needed=True)]
        return SearchResult(
            passages(rows, by=self.name, topic="news", wanted=wanted, limit=request.limit),
            backend=self.name,
            notes=notes,
            credits=1.0,
            usd=self._usd_per_credit,
        )

    def _with_quota(self, answer: ApiAnswer) -> ApiAnswer:
        """403 is the day's quota; it begins again at 00:00 UTC.

        Raises:
            SourceError: it is spent.
        """
        if answer.status != 403:
            return answer
        now = self._now().astimezone(UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        why = f"{self.name} answered 403: {sentence_of(answer)}; its daily quota begins again at 00:00 UTC"
        raise SourceError(why, kind="quota", retry_after=(midnight - now).total_seconds())

    def _row(self, row: dict[str, Any], wanted: ReadFilters) -> ResultRow:
        return ResultRow(
            title=plain(row.get("title")),
            text=_whole(plain(row.get("description")), _CUT_OFF.sub("…", plain(row.get("content")))),
            url=url_of(row.get("url")),
            date=iso_date(row.get("publishedAt"), now=self._now(), lang=wanted.lang),
        )


def _whole(description: str, content: str) -> str:
    """The description, then the beginning of the article, where they are not the same."""
    start = description.rstrip(".… ")[:80]
    return content if content.startswith(start) else f"{description}\n{content}".strip()


def query_text(query: str) -> str:
    """A query in GNews's language: every term must match, and what is no plain word is quoted.

    AND, OR and NOT stay where they join terms. Without them, words that say nothing are left out. What is longer than
    200 characters loses its last terms.
    """
    terms = [_term(found) for found in _TERM.findall(query)]
    if not {"AND", "OR", "NOT"} & set(terms):
        found = telling(query)
        terms = [_term(f'"{phrase}"') for phrase in found.phrases] + [_term(word) for word in found.words]
    kept: list[str] = []
    for term in filter(None, terms):
        joins = term in {"AND", "OR"}
        if joins and (not kept or kept[-1] in {"AND", "OR", "NOT"}):
            continue
        if term == "NOT" and kept[-1:] == ["NOT"]:
            continue
        if len(" ".join([*kept, term])) > MAX_QUERY:
            break
        kept.append(term)
    while kept and kept[-1] in {"AND", "OR", "NOT"}:
        kept.pop()
    return " ".join(kept)


def _term(found: str) -> str:
    """One word or phrase; empty if nothing is left of it."""
    bare = found.strip(_BRACKETS)
    if found in {"AND", "OR", "NOT"} or re.fullmatch(r"\w+", bare):
        return bare
    inside = " ".join(re.sub(r'["“”\\]', " ", bare).split())
    return f'"{inside}"' if any(letter.isalnum() for letter in inside) else ""
