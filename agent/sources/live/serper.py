"""Serper, which is Google as JSON: the web with its answer boxes, news, and Scholar for the kind science."""

from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Any, Final

import httpx2

from agent.errors import SourceError
from agent.outbound.numbers import retry_after
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import ReadFilters, read_filters, unhonoured
from agent.sources.http import Api, ApiAnswer
from agent.sources.limits import Limits
from agent.sources.live.dates import iso_date, utc_now
from agent.sources.live.queries import cut
from agent.sources.live.reading import (
    ResultRow,
    Topic,
    checked_key,
    cost,
    member,
    object_of,
    passages,
    plain,
    rows_of,
    site_operators,
    text_of,
    url_of,
)

BASE: Final = "https://google.serper.dev"
HONOURS: Final = frozenset({"after", "before", "site", "not", "recent", "lang", "kind"})
LIMITS: Final = Limits(concurrency=4, requests=5.0, per_seconds=1.0)
NEWS_LIMITS: Final = Limits(concurrency=4, requests=5.0, per_seconds=1.0, keep_seconds=900.0)
USD_PER_CREDIT: Final = 0.001
"""The smallest package: 50,000 credits for 50 dollars."""
MAX_QUERY: Final = 2048
MAX_RESULTS: Final = 100
RESULTS_FOR_ONE_CREDIT: Final = 10
_PATHS: Final = {"general": "/search", "news": "/news", "science": "/scholar"}
_RECENT: Final = {"day": "qdr:d", "week": "qdr:w", "month": "qdr:m", "year": "qdr:y"}


class SerperSource:
    """Google's web, news or Scholar results from Serper."""

    name = "serper"
    HONOURS = HONOURS

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        key: str,
        base: str = BASE,
        topic: Topic = "web",
        max_results: int = RESULTS_FOR_ONE_CREDIT,
        usd_per_credit: float = USD_PER_CREDIT,
        limits: Limits | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Ask Serper.

        Args:
            client: shared; who made it closes it.
            key: of the account.
            base: of the API.
            topic: what is searched, and the name of the source that passages carry.
            max_results: never ask for more, up to 100; more than 10 cost two credits.
            usd_per_credit: what a credit costs you.
            limits: for the guard around this source.
            now: the time that relative dates and filters count from.

        Raises:
            SetupError: there is no key.
        """
        key = checked_key(key, api="Serper", get_one="https://serper.dev")
        self._api = Api(client, name=self.name, base=base, headers={"X-API-KEY": key}, secret=key)
        self._topic: Topic = topic
        self._max_results = min(max(1, max_results), MAX_RESULTS)
        self._usd_per_credit = usd_per_credit
        self._now = now
        self.limits = limits or (NEWS_LIMITS if topic == "news" else LIMITS)

    @property
    def credits_per_search(self) -> float:
        return _credits(self._max_results)

    async def search(self, request: SearchRequest) -> SearchResult:
        """Search once.

        Raises:
            SourceError: with its kind.
        """
        wanted = read_filters(request.filters)
        kind = "news" if self._topic == "news" else wanted.kind if wanted.kind in _PATHS else "general"
        notes = unhonoured(request.filters, honours=_honours(wanted, kind), by=self.name)
        if request.limit < 1 or not request.query.strip():
            return SearchResult(backend=self.name, notes=notes, credits=0.0)
        count = min(request.limit, self._max_results)
        operators = site_operators(wanted, room=MAX_QUERY // 2)
        body = {
            "q": f"{cut(request.query, MAX_QUERY - len(operators) - 1)} {operators}".strip(),
            "num": count,
            "hl": wanted.lang or None,
            "tbs": None if kind == "science" else _time(wanted, today=self._now().date()),
        }
        answer = await self._api.send("POST", _PATHS[kind], body=body)
        data = object_of(self._api.parse(self._api.checked(_paid(answer, by=self.name))), by=self.name)
        credits = cost(data.get("credits"), otherwise=_credits(count))
        return SearchResult(
            passages(
                self._rows(data, wanted, kind), by=self.name, topic=self._topic, wanted=wanted, limit=request.limit
            ),
            backend=self.name,
            notes=notes,
            credits=credits,
            usd=credits * self._usd_per_credit,
        )

    def _rows(self, data: dict[str, Any], wanted: ReadFilters, kind: str) -> Iterator[ResultRow]:
        if kind == "general":
            yield from filter(None, (_answer_box(member(data, "answerBox")), _graph(member(data, "knowledgeGraph"))))
        for row in rows_of(data, "news" if kind == "news" else "organic", by=self.name):
            yield ResultRow(
                title=plain(row.get("title")),
                text="\n".join(filter(None, (plain(row.get("publicationInfo")), plain(row.get("snippet"))))),
                url=url_of(row.get("link")) or url_of(row.get("pdfUrl")),
                date=iso_date(text_of(row.get("date") or row.get("year")), now=self._now(), lang=wanted.lang),
            )


def _credits(results: int) -> float:
    return 1.0 if results <= RESULTS_FOR_ONE_CREDIT else 2.0


def _honours(wanted: ReadFilters, kind: str) -> frozenset[str]:
    """Scholar knows no dates; there is no endpoint for finance, and news is all that a source of news has."""
    without = {"after", "before", "recent"} if kind == "science" else set[str]()
    return HONOURS - without - ({"kind"} if wanted.kind not in {"", "general", kind} else set())


def _time(wanted: ReadFilters, *, today: date) -> str | None:
    """Google's own time filter: a period until now, or a range of days."""
    if wanted.after is None and wanted.before is None:
        return _RECENT.get(wanted.recent)
    days = {"cd_min": wanted.since(today), "cd_max": wanted.before}
    return ",".join(["cdr:1", *(f"{name}:{day.month}/{day.day}/{day.year}" for name, day in days.items() if day)])


def _paid(answer: ApiAnswer, *, by: str) -> ApiAnswer:
    """Serper calls an empty account a bad request."""
    if answer.status in {400, 402, 429} and "not enough credits" in answer.text.lower():
        why = f"{by} answered {answer.status}: the account has no credits left; buy some at https://serper.dev"
        raise SourceError(why, kind="quota", retry_after=retry_after(answer.headers))
    return answer


def _answer_box(box: dict[str, Any]) -> ResultRow | None:
    """What Google shows above all results."""
    text = "\n".join(dict.fromkeys(filter(None, (plain(box.get("answer")), plain(box.get("snippet"))))))
    return ResultRow(title=plain(box.get("title")), text=text, url=url_of(box.get("link"))) if text else None


def _graph(graph: dict[str, Any]) -> ResultRow | None:
    """What Google shows beside the results: a description, and facts as `name: value`."""
    facts = [f"{name}: {value}" for name, stated in member(graph, "attributes").items() if (value := plain(stated))]
    text = "\n".join(filter(None, (plain(graph.get("type")), plain(graph.get("description")), *facts)))
    url = url_of(graph.get("descriptionLink")) or url_of(graph.get("website"))
    return ResultRow(title=plain(graph.get("title")), text=text, url=url) if text else None
