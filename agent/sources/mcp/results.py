"""What a tool gave, as rows: lists of results, resources and links one by one, anything else as it is.

Everything here was written by a stranger. Nothing of it is opened: a link is an address, and no more.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from agent.outbound.urls import split_url
from agent.sources.live.dates import iso_date, utc_now
from agent.sources.live.reading import ResultRow, member, objects, text_of, texts, url_of
from agent.sources.pages.part import best_part

MAX_PART: Final = 3_000
"""Characters of one text; of a longer one, the part that fits the query."""
_BODIES: Final = ("text", "content", "markdown", "page_content", "chunk", "body")
_TEXTS: Final = (*_BODIES, "snippet", "description", "summary", "abstract", "excerpt")
_RESULTS: Final = ("results", "items", "hits", "documents", "pages", "data", "matches")
"""How a list of results is named; the most usual name first."""
_LISTS: Final = ("highlights", "snippets", "chunks", "observations")
"""Lists of texts."""
_TITLES: Final = ("title", "name", "heading")
_URLS: Final = ("url", "link", "href", "uri", "source")
_DATES: Final = ("date", "published", "published_date", "publishedDate", "published_at", "updated_at", "created_at")
_DEPTH: Final = 3
"""Objects that a list may be in."""


def rows_of_result(result: Any, *, title: str, query: str, most_chars: int) -> list[ResultRow]:
    """The rows of one answer, together of at most `most_chars`.

    Args:
        result: of a call of a tool, as the SDK gives it.
        title: of what has none.
        query: decides which part of a long text is shown.
        most_chars: the rest is left out.
    """
    found = list(_rows(result, title))
    kept: list[ResultRow] = []
    left = most_chars
    for row in found:
        text = row.text[:left]
        left -= len(text)
        if len(text) > MAX_PART:
            text = best_part(text, query, subject=row.title, chars=MAX_PART).text
        if text or (row.url and row.title):
            kept.append(ResultRow(title=row.title, text=text, url=row.url, date=row.date))
        if left <= 0:
            break
    return kept


def _rows(result: Any, title: str) -> Iterator[ResultRow]:
    if listed := listed_rows(result.structured_content):
        yield from listed
        return
    for block in result.content:
        if block.type == "resource_link":
            yield _linked(block)
        elif block.type == "resource" and text_of(getattr(block.resource, "text", "")):
            address = str(block.resource.uri)
            yield ResultRow(title=_last(address) or title, text=text_of(block.resource.text), url=url_of(address))
        elif block.type == "text":
            text = text_of(block.text)
            value = _json(text)
            whole = [] if not text or _holds_nothing(value) else [ResultRow(title=title, text=text)]
            yield from listed_rows(value) or whole


def listed_rows(value: Any) -> list[ResultRow]:
    """The results in a value of JSON: a list of objects with a text or a link, in the value or in its members.

    Of several lists it is one that is named as results are, else the one with the most text. Where no list has rows,
    or the object around them is a page of its own, it is that object.
    """
    if isinstance(value, list):
        return [row for one in objects(value) if (row := _row(one))]
    within = list(_objects_in(value))
    for data in within:
        if quoted := _quoted(data):
            return quoted
    if named := _named_lists(within):
        return _longest(map(listed_rows, named))
    listed = _longest(listed_rows(inner) for data in within for inner in data.values() if isinstance(inner, list))
    alone = [row for data in within if (row := _row(data)) and row.title]
    if alone and len(_first(within[0], _BODIES)) > _chars(listed):
        return alone[:1]
    return listed or _longest([row] for row in alone)


def _objects_in(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """An object and those in it, the outermost first; none that is in a list."""
    if isinstance(value, dict) and depth < _DEPTH:
        data = cast(dict[str, Any], value)
        yield data
        for inner in data.values():
            yield from _objects_in(inner, depth + 1)


def _named_lists(within: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """Lists that are named as results are: of rows, or empty."""
    lists = (data[name] for data in within for name in _RESULTS if isinstance(data.get(name), list))
    return [rows for rows in lists if not rows or listed_rows(rows)]


def _longest(lists: Iterable[list[ResultRow]]) -> list[ResultRow]:
    """The list with the most text, and of those without one the list with the most rows."""
    return max(lists, key=lambda rows: (_chars(rows), len(rows)), default=list[ResultRow]())


def _chars(rows: Iterable[ResultRow]) -> int:
    return sum(len(row.text) for row in rows)


def _row(one: Mapping[str, Any]) -> ResultRow | None:
    one = {**member(one, "metadata"), **one}
    text, title = _first(one, _TEXTS), _first(one, _TITLES)
    text = text or next((joined for name in _LISTS if (joined := "\n".join(texts(one.get(name))))), "")
    url = next((url for name in _URLS if (url := url_of(one.get(name)))), "")
    if title and url and not text:
        others = (text_of(value) for name, value in one.items() if name not in _TITLES)
        text = max((other for other in others if " " in other), key=len, default="")
    if not text and not (title and url):
        return None
    date = next((day for name in _DATES if (day := iso_date(one.get(name), now=utc_now()))), "")
    return ResultRow(title=title, text=text, url=url, date=date)


def _first(one: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := text_of(one.get(name)))), "")


def _quoted(bundle: dict[str, Any]) -> list[ResultRow]:
    """Of Cairn's own evidence, the words of each source that it quotes: its claims are another agent's words."""
    if not {"claims", "sources", "trace_id"} <= bundle.keys():
        return []
    quotes: dict[Any, list[str]] = {}
    for claim in objects(bundle["claims"]):
        for quote in objects(claim.get("quotes")):
            quotes.setdefault(str(quote.get("source")), []).append(text_of(quote.get("text")))
    return [
        ResultRow(
            title=text_of(source.get("title")),
            text="\n".join(dict.fromkeys(quotes.get(str(source.get("number")), []))),
            url=url_of(source.get("url")),
            date=text_of(source.get("date")),
        )
        for source in objects(bundle["sources"])
    ]


def _linked(link: Any) -> ResultRow:
    address = str(link.uri)
    title = text_of(link.title) or text_of(link.name) or _last(address)
    return ResultRow(title=title, text=text_of(link.description) or address, url=url_of(address))


def _last(address: str) -> str:
    """The last part of an address's path."""
    return split_url(address).path.rstrip("/").rpartition("/")[2]


def _holds_nothing(value: Any) -> bool:
    """`[]`, `{"entities": [], "relations": []}`, or results that are an empty list, with neither text nor answer."""
    named = _named_lists(within := list(_objects_in(value)))
    if named and not any(named) and not any(_first(data, (*_TEXTS, "answer")) for data in within):
        return True
    inner = cast(dict[str, Any], value).values() if isinstance(value, dict) else [value]
    return value is not None and all(isinstance(one, list) and not one for one in inner)


def _json(text: str) -> Any:
    if not text.startswith(("[", "{")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
