"""Brave's own index: web and news. Its errors name their reason in a code, its rate limits are in headers."""

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Any, Final

import httpx2

from agent.errors import SourceError
from agent.outbound.numbers import retry_after
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import ReadFilters, read_filters, unhonoured
from agent.sources.http import Api, ApiAnswer, sentence_of
from agent.sources.limits import Limits
from agent.sources.live.dates import iso_date, utc_now
from agent.sources.live.queries import cut
from agent.sources.live.reading import (
    ResultRow,
    Topic,
    checked_key,
    member,
    object_of,
    passages,
    plain,
    rows_of,
    site_operators,
    texts,
    url_of,
)

BASE: Final = "https://api.search.brave.com"
HONOURS: Final = frozenset({"after", "before", "site", "not", "recent", "lang", "kind"})
LIMITS: Final = Limits(concurrency=1, requests=1, per_seconds=1.1)
"""The free plan may ask once a second."""
NEWS_LIMITS: Final = Limits(concurrency=1, requests=1, per_seconds=1.1, keep_seconds=900.0)
USD_PER_CREDIT: Final = 0.005
"""The plan for search: 5 dollars for 1,000 requests."""
MAX_QUERY: Final = 400
MAX_WORDS: Final = 50
MAX_RESULTS: Final = {"web": 20, "news": 50}
_RECENT: Final = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}
_LONG_AGO: Final = date(1990, 1, 1)
_LANGUAGES: Final = frozenset(
    "ar eu bn bg ca hr cs da nl en et fi fr gl de gu he hi hu is it kn ko lv lt ms ml mr nb pl pa ro ru sr sk sl es sv "
    "ta te th tr uk vi".split()
)
_OTHERWISE: Final = {"zh": "zh-hans", "ja": "jp", "no": "nb", "nn": "nb", "pt": "pt-br"}
"""Languages whose code is another one there."""
_TOKEN: Final = re.compile(r"subscription.token", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+")


class BraveSource:
    """Web pages or news from Brave Search."""

    name = "brave"
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
        """Ask Brave.

        Args:
            client: shared; who made it closes it.
            key: of a subscription.
            base: of the API.
            topic: what is searched, and the name of the source that passages carry.
            usd_per_credit: what a request costs you.
            limits: for the guard around this source.
            now: the time that relative dates and filters count from.

        Raises:
            SetupError: there is no key.
        """
        key = checked_key(key, api="Brave Search", get_one="https://api-dashboard.search.brave.com")
        headers = {"X-Subscription-Token": key, "Accept": "application/json"}
        self._api = Api(client, name=self.name, base=base, headers=headers, secret=key)
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
        topic: Topic = "news" if wanted.kind == "news" else self._topic
        lang = _OTHERWISE.get(wanted.lang, wanted.lang if wanted.lang in _LANGUAGES else "")
        notes = unhonoured(request.filters, honours=_honours(wanted, topic=topic, lang=lang), by=self.name)
        if request.limit < 1 or not request.query.strip():
            return SearchResult(backend=self.name, notes=notes, credits=0.0)
        params = {
            "q": _bounded(request.query, site_operators(wanted, without="NOT site:", room=MAX_QUERY // 2)),
            "count": min(request.limit, MAX_RESULTS[topic]),
            "search_lang": lang or None,
            "freshness": _freshness(wanted, today=self._now().date()),
            "text_decorations": "false" if topic == "web" else None,
            "result_filter": "web" if topic == "web" else None,
        }
        answer = await self._api.send("GET", f"/res/v1/{topic}/search", params=params)
        data = object_of(self._api.parse(self._api.checked(_explained(answer, by=self.name))), by=self.name)
        return SearchResult(
            passages(
                self._rows(data, wanted, topic), by=self.name, topic=self._topic, wanted=wanted, limit=request.limit
            ),
            backend=self.name,
            notes=notes,
            credits=1.0,
            usd=self._usd_per_credit,
        )

    def _rows(self, data: dict[str, Any], wanted: ReadFilters, topic: Topic) -> Iterator[ResultRow]:
        """Where the web has nothing, `web` is absent."""
        found = member(data, "web") if topic == "web" else data
        for row in rows_of(found, "results", by=self.name, needed=topic == "news"):
            yield ResultRow(
                title=plain(row.get("title")),
                text="\n".join(dict.fromkeys(texts([row.get("description")]) + texts(row.get("extra_snippets")))),
                url=url_of(row.get("url")),
                date=self._date(row, wanted),
            )

    def _date(self, row: dict[str, Any], wanted: ReadFilters) -> str:
        """`page_age` is a timestamp, `age` is for people: "2 days ago"."""
        dates = (iso_date(row.get(name), now=self._now(), lang=wanted.lang) for name in ("page_age", "age"))
        return next(filter(None, dates), "")


def _honours(wanted: ReadFilters, *, topic: Topic, lang: str) -> frozenset[str]:
    """There are neither science nor finance, and only some languages."""
    return (
        HONOURS
        - ({"kind"} if wanted.kind not in {"", "general", topic} else set[str]())
        - ({"lang"} if wanted.lang and not lang else set[str]())
    )


def _bounded(query: str, operators: str) -> str:
    """The query and its operators in at most 400 characters and 50 words."""
    words = query.split()[: MAX_WORDS - len(operators.split())]
    return f"{cut(' '.join(words), MAX_QUERY - len(operators) - 1)} {operators}".strip()


def _freshness(wanted: ReadFilters, *, today: date) -> str | None:
    """A period until now, or a range of days; a range has two ends."""
    if wanted.after is None and wanted.before is None:
        return _RECENT.get(wanted.recent)
    return f"{wanted.since(today) or _LONG_AGO}to{wanted.before or today}"


def _explained(answer: ApiAnswer, *, by: str) -> ApiAnswer:
    """Separate what Brave answers with one status: a bad key from a bad query, a month's quota from a second's rate.

    Raises:
        SourceError: the key, the quota or the rate.
    """
    why = f"{by} answered {answer.status}: {sentence_of(answer)}"
    if answer.status == 422 and _TOKEN.search(answer.text):
        raise SourceError(f"{by} answered 422: it does not know this key", kind="auth")
    if answer.status in {402, 429}:
        limits, left, resets = (
            _numbers(answer.headers.get(f"x-ratelimit-{name}", "")) for name in ("limit", "remaining", "reset")
        )
        month_over = len(left) > 1 and left[-1] == 0 and limits[-1:] != [0.0]  # a metered plan's month has the limit 0
        spent = answer.status == 402 or "QUOTA" in answer.text or month_over
        reset = (resets[-1] if spent else resets[0]) if resets else None
        stated = retry_after(answer.headers)
        raise SourceError(why, kind="quota" if spent else "rate", retry_after=reset if stated is None else stated)
    return answer


def _numbers(header: str) -> list[float]:
    """`1, 1419704`: the second's figure, then the month's."""
    return [float(found) for found in _NUMBER.findall(header)]
