"""Wikipedia through MediaWiki's API: one request gives the pages found, their introductions and what matched.

A wiki of one's own with CirrusSearch or plain search and TextExtracts answers in the same way.
"""

import re
from collections.abc import Iterable, Mapping
from html import unescape
from typing import Any, Final, cast
from urllib.parse import quote

import httpx2

from agent.errors import SourceError
from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import read_filters, unhonoured
from agent.sources.http import Api
from agent.sources.limits import Limits
from agent.sources.live.action_api import read_object
from agent.sources.live.queries import cut, keywords
from agent.sources.live.reading import text_of, url_of

BASE: Final = "https://{lang}.wikipedia.org"
LIMITS: Final = Limits(concurrency=3, requests=5.0, per_seconds=1.0, timeout_seconds=10.0)
"""Wikimedia wants at most three requests at once from clients that are not logged in."""
HONOURS: Final = frozenset({"lang"})
MAX_QUERY: Final = 300
MAX_PAGES: Final = 20
"""Extracts in one answer, at most."""
MAX_EXTRACT: Final = 1500
"""Characters of one introduction."""

_LANG: Final = re.compile(r"[a-z]{2,3}")
_NO_WIKI: Final = (301, 302, 307, 308, 404)
_TAG: Final = re.compile(r"<[^<>]*>")
_SENTENCE_END: Final = re.compile(r"[.!?。][\"'”’)]*(?=\s|$)")


class MediaWikiSource:
    """Pages of a wiki, by full-text search."""

    name = "mediawiki"
    HONOURS = HONOURS

    def __init__(
        self, client: httpx2.AsyncClient, *, base: str = BASE, lang: str = "en", limits: Limits = LIMITS
    ) -> None:
        """Ask the wiki under `base`.

        Args:
            client: shared; who made it closes it.
            base: without /w/api.php; `{lang}` in it is the language.
            lang: where no filter asks for another.
            limits: for the guard around this source.
        """
        self._client = client
        self._base = base
        self._lang = lang
        self.limits = limits

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give the introductions of at most `limit` pages, each with the piece of the page that matched.

        Raises:
            SourceError: with its kind.
        """
        honours = HONOURS if "{lang}" in self._base else frozenset[str]()
        notes = unhonoured(request.filters, honours=honours, by=self.name)
        lang = read_filters(request.filters).lang.lower() or self._lang
        if not _LANG.fullmatch(lang):
            notes += (f"{self.name} knows no language '{lang}' and searched in '{self._lang}'",)
            lang = self._lang
        wanted = keywords(request.query, MAX_QUERY)
        if request.limit < 1 or not wanted:
            return SearchResult(backend=self.name, notes=notes)
        api = Api(self._client, name=self.name, base=self._base.replace("{lang}", lang))
        answer = await api.send("GET", "/w/api.php", params=_params(wanted, limit=request.limit))
        if answer.status in _NO_WIKI:
            raise SourceError(f"there is no wiki for '{lang}' at {api.base}", kind="bad_query")
        data = read_object(api, answer)
        passages = read_pages(data, base=api.base, lang=lang)[: request.limit]
        notes = notes if passages else notes + _suggestion(data)
        return SearchResult(tuple(passages), backend=self.name, notes=notes)


def _params(wanted: str, *, limit: int) -> dict[str, object]:
    """The generator brings introductions, the list what matched: extracts alone would hide why a page was found."""
    pages = min(limit, MAX_PAGES)
    return {
        "action": "query",
        "format": "json",
        "formatversion": 2,
        "generator": "search",
        "gsrsearch": wanted,
        "gsrlimit": pages,
        "list": "search",
        "srsearch": wanted,
        "srlimit": pages,
        "srprop": "snippet|timestamp",
        "srinfo": "suggestion",
        "prop": "extracts|info|pageprops",
        "exintro": 1,
        "explaintext": 1,
        "exlimit": "max",
        "inprop": "url",
        "ppprop": "wikibase_item|disambiguation",
        "redirects": 1,
        "maxlag": 5,
    }


def read_pages(data: Mapping[str, Any], *, base: str, lang: str) -> list[Passage]:
    """The passages of one answer: in the order of the search, pages that only list meanings of a name last.

    Raises:
        SourceError: the answer has another shape.
    """
    try:
        query: dict[str, Any] = data.get("query", {})
        hits: list[dict[str, Any]] = query.get("search", [])
        listed = {hit["title"]: (place, hit) for place, hit in enumerate(hits, start=1)}
        found: list[dict[str, Any]] = query.get("pages", [])
        pages = [page for page in found if not page.get("missing") and not page.get("invalid")]
        there = {page["title"] for page in pages}
        pages += [{"title": title} for title in listed if title not in there]
        pages.sort(key=lambda page: _place(page, listed))
        passages = [_passage(page, listed.get(page["title"], (0, {}))[1], base=base, lang=lang) for page in pages]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SourceError(
            f"mediawiki sent an unexpected answer ({type(error).__name__}: {error})", kind="parse"
        ) from error
    return [p.model_copy(update={"rank": rank, "score": 1 / rank}) for rank, p in enumerate(_with_text(passages), 1)]


def _place(page: Mapping[str, Any], listed: Mapping[str, tuple[int, Any]]) -> tuple[bool, int]:
    """The generator gives pages by id; `index` holds their order."""
    index: int = page.get("index") or listed.get(page["title"], (len(listed) + MAX_PAGES, None))[0]
    return "disambiguation" in (page.get("pageprops") or ()), index


def _passage(page: Mapping[str, Any], hit: Mapping[str, Any], *, base: str, lang: str) -> Passage:
    title = _line(page["title"])
    number = page.get("pageid") or hit.get("pageid")
    extract = _shortened(_line(page.get("extract")))
    return Passage(
        id=f"wiki:{lang}:{number or title}",
        source="wiki",
        title=title,
        text=_joined(extract, _line(unescape(_TAG.sub("", _line(hit.get("snippet")))))),
        url=url_of(page.get("fullurl")) or f"{base}/wiki/{quote(title.replace(' ', '_'), safe='/:(),')}",
        date=_line(hit.get("timestamp"))[:10],
    )


def _with_text(passages: Iterable[Passage]) -> list[Passage]:
    """A page of which nothing is known but its title says so by its title."""
    return [passage if passage.text else passage.model_copy(update={"text": passage.title}) for passage in passages]


def _line(value: object) -> str:
    """Text in one line, without what no text has."""
    return " ".join(text_of(value).split())


def _joined(extract: str, snippet: str) -> str:
    """The introduction, and what matched where the introduction does not say it already."""
    if not snippet or snippet in extract:
        return extract
    return f"{extract} … {snippet}" if extract else snippet


def _shortened(text: str) -> str:
    """At most `MAX_EXTRACT` characters, whole sentences where that is possible."""
    if len(text) <= MAX_EXTRACT:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, MAX_EXTRACT)]
    return text[: ends[-1]] if ends and ends[-1] > MAX_EXTRACT // 2 else cut(text, MAX_EXTRACT - 1) + "…"


def _suggestion(data: Mapping[str, Any]) -> tuple[str, ...]:
    query = data.get("query")
    info: Any = cast(dict[str, Any], query).get("searchinfo") if isinstance(query, dict) else None
    meant: Any = cast(dict[str, Any], info).get("suggestion") if isinstance(info, dict) else None
    return (f"mediawiki asks whether '{meant}' was meant",) if meant else ()
