"""SearXNG: an instance of your own, with JSON switched on. A public instance answers programs with 403 or 429."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final, cast

import httpx2

from agent.errors import SetupError, SourceError
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
    number,
    object_of,
    objects,
    passages,
    plain,
    rows_of,
    site_operators,
    url_of,
)

HONOURS: Final = frozenset({"site", "not", "recent", "lang", "kind"})
LIMITS: Final = Limits(concurrency=1, requests=1, per_seconds=2.0)
"""Its engines block an address that asks them many things at once."""
NEWS_LIMITS: Final = Limits(concurrency=1, requests=1, per_seconds=2.0, keep_seconds=900.0)
MAX_QUERY: Final = 500
_CATEGORIES: Final = {"general": "general", "news": "news", "science": "science"}
_SWITCHED_OFF: Final = "JSON is switched off there; write search.formats: [html, json] into its settings.yml"
_LIMITER: Final = (
    "its limiter stops programs; put this machine's address into botdetection.ip_lists.pass_ip of its limiter.toml, "
    "or set server.limiter: false on a private instance"
)


class SearxngSource:
    """Web, news or science results of a SearXNG instance."""

    name = "searxng"
    HONOURS = HONOURS

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        base: str,
        topic: Topic = "web",
        limits: Limits | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Ask an instance.

        Args:
            client: shared; who made it closes it.
            base: of the instance, for example http://127.0.0.1:8888, or http://name:password@searx.example.org.
            topic: what is searched, and the name of the source that passages carry.
            limits: for the guard around this source.
            now: the time that relative dates count from.

        Raises:
            SetupError: `base` is no URL.
        """
        if not url_of(base):
            raise SetupError("SearXNG needs the URL of an instance, for example http://127.0.0.1:8888")
        self._api = Api(client, name=self.name, base=base)
        self._topic: Topic = topic
        self._now = now
        self.limits = limits or (NEWS_LIMITS if topic == "news" else LIMITS)

    @property
    def credits_per_search(self) -> float:
        return 0.0

    async def search(self, request: SearchRequest) -> SearchResult:
        """Search once.

        Raises:
            SourceError: with its kind.
        """
        wanted = read_filters(request.filters)
        category = "news" if self._topic == "news" else _CATEGORIES.get(wanted.kind, "general")
        honours = HONOURS - {"kind"} if wanted.kind not in {"", "general", category} else HONOURS
        notes = unhonoured(request.filters, honours=honours, by=self.name)
        if request.limit < 1 or not request.query.strip():
            return SearchResult(backend=self.name, notes=notes)
        operators = site_operators(wanted, room=MAX_QUERY // 2)
        params = {
            "q": f"{cut(request.query, MAX_QUERY - len(operators) - 1)} {operators}".strip(),
            "format": "json",
            "categories": category,
            "language": wanted.lang or None,
            "time_range": wanted.recent or None,
        }
        answer = await self._api.send("GET", "/search", params=params)
        data = object_of(self._api.parse(self._api.checked(_open(answer, by=self.name))), by=self.name)
        rows = list(self._rows(data, wanted))
        silent = _silent(data)
        if silent and not rows:
            raise SourceError(f"none of searxng's engines answered: {silent}", kind="upstream")
        return SearchResult(
            passages(rows, by=self.name, topic=self._topic, wanted=wanted, limit=request.limit),
            backend=self.name,
            notes=(*notes, f"searxng had no answer from {silent}") if silent else notes,
        )

    def _rows(self, data: dict[str, Any], wanted: ReadFilters) -> Iterator[ResultRow]:
        results = rows_of(data, "results", by=self.name, needed=True)
        if self._topic == "web":
            yield from _answers(data.get("answers"))
            yield from (_infobox(box) for box in rows_of(data, "infoboxes", by=self.name) if plain(box.get("content")))
        for row in results:
            yield ResultRow(
                title=plain(row.get("title")),
                text=plain(row.get("content")),
                url=url_of(row.get("url")),
                date=iso_date(row.get("publishedDate"), now=self._now(), lang=wanted.lang),
                score=number(row.get("score")) or 0.0,
            )


def _open(answer: ApiAnswer, *, by: str) -> ApiAnswer:
    """Name the fix of the two ways in which an instance refuses programs."""
    if answer.status == 403:
        raise SourceError(f"{by} answered 403: {_SWITCHED_OFF}", kind="auth")
    if answer.status == 429:
        raise SourceError(f"{by} answered 429: {_LIMITER}", kind="rate", retry_after=retry_after(answer.headers))
    return answer


def _silent(data: dict[str, Any]) -> str:
    """The engines that gave no answer, with their reasons: `brave (too many requests), qwant (timeout)`."""
    names = data.get("unresponsive_engines")
    pairs = cast(list[Any], names) if isinstance(names, list) else []
    named = [cast(list[Any], pair) for pair in pairs if isinstance(pair, list)]
    return ", ".join(f"{plain(pair[0])} ({plain(pair[1])})" for pair in named if len(pair) > 1)[:200]


def _answers(answers: Any) -> Iterator[ResultRow]:
    """What engines say at once: sentences, or objects in newer versions."""
    for answer in cast(list[Any], answers) if isinstance(answers, list) else []:
        said = cast(dict[str, Any], answer) if isinstance(answer, dict) else {"answer": answer}
        if text := plain(said.get("answer")):
            yield ResultRow(title="Answer", text=text, url=url_of(said.get("url")))


def _infobox(box: dict[str, Any]) -> ResultRow:
    """A description and facts, mostly of Wikipedia and Wikidata."""
    facts = [f"{plain(row.get('label'))}: {plain(row.get('value'))}" for row in objects(box.get("attributes"))]
    links = [url_of(link.get("url")) for link in objects(box.get("urls"))]
    return ResultRow(
        title=plain(box.get("infobox")),
        text="\n".join(filter(None, (plain(box.get("content")), *facts))),
        url=url_of(box.get("id")) or next(filter(None, links), ""),
    )
