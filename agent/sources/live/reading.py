"""What the backends share: keys checked, unverified answers read into passages.

Nothing here touches a network.
"""

import hashlib
import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from agent.errors import SetupError, SourceError
from agent.evidence import Passage
from agent.outbound.urls import split_url
from agent.sources.filters import ReadFilters, bare_site, on_wanted_host

Topic = Literal["web", "news"]

MAX_TITLE: Final = 500
MAX_TEXT: Final = 20_000
"""Characters of one passage: no snippet has as many, and each is kept in every trace."""

_KEY: Final = re.compile(r"[!-~]+")
_TAG: Final = re.compile(
    r"</?(?:a|b|br|em|font|i|li|mark|ol|p|small|span|strong|sub|sup|u|ul|wbr)(?:\s[^<>]*)?/?>", re.I
)
_BREAK: Final = re.compile(r"<(?:br|li|p)(?:\s[^<>]*)?/?>", re.I)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_SPACES: Final = re.compile(r"[^\S\n]+")
_LINES: Final = re.compile(r"\s*\n\s*")
_IN_URL: Final = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class ResultRow:
    """One result as an API gives it; any of it may be missing."""

    title: str = ""
    text: str = ""
    url: str = ""
    date: str = ""
    score: float = 0.0


def checked_key(key: str, *, api: str, get_one: str) -> str:
    """The key, without white space around it.

    Raises:
        SetupError: there is none, or it holds what no key holds; the key itself is not repeated.
    """
    key = key.strip()
    if not key:
        raise SetupError(f"{api} needs an API key; get one at {get_one}")
    if not _KEY.fullmatch(key):
        raise SetupError(f"the API key for {api} has a space or another character that no key has; copy it again")
    return key


def object_of(data: Any, *, by: str) -> dict[str, Any]:
    """The answer as an object.

    Raises:
        SourceError: it is something else.
    """
    if not isinstance(data, dict):
        raise SourceError(f"{by} sent JSON that is not an object but {type(data).__name__}", kind="parse")
    return cast(dict[str, Any], data)


def rows_of(data: Mapping[str, Any], name: str, *, by: str, needed: bool = False) -> list[dict[str, Any]]:
    """The objects of a list; what is no object in it is left out.

    Raises:
        SourceError: it is no list, or it is missing and `needed`.
    """
    rows = data.get(name)
    if rows is None and not needed:
        return []
    if not isinstance(rows, list):
        raise SourceError(f"{by} sent an unexpected answer: there is no list '{name}' in it", kind="parse")
    return objects(cast(list[Any], rows))


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; nothing where there is no list."""
    rows = cast(list[Any], value) if isinstance(value, list) else []
    return [cast(dict[str, Any], row) for row in rows if isinstance(row, dict)]


def texts(value: Any) -> list[str]:
    """The plain texts of a list, without the empty ones; nothing where there is no list."""
    return [text for item in cast(list[Any], value) if (text := plain(item))] if isinstance(value, list) else []


def member(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object inside an object; empty where it is none."""
    found = data.get(name)
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def number(value: Any) -> float | None:
    """A number that is one."""
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if fits and abs(value) < 1e9 else None


def cost(stated: Any, *, otherwise: float) -> float:
    """What an API says a request cost; what is known of its prices, where it says nothing that can be."""
    used = number(stated)
    return otherwise if used is None or used < 0 else used


def text_of(value: Any) -> str:
    """Text as it was sent, without what no text has; anything but text and numbers is empty."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return _CONTROL.sub("", value).strip() if isinstance(value, str) else ""


def plain(value: Any) -> str:
    """Text without the markup and entities of HTML; lines stay, white space inside them becomes one space.

    Only tags that mark up running text are taken out: `List<String>` keeps its own.
    """
    marked = _TAG.sub("", _BREAK.sub("\n", text_of(value)))
    return _LINES.sub("\n", _SPACES.sub(" ", _CONTROL.sub("", html.unescape(marked)))).strip()


def url_of(value: Any) -> str:
    """A URL of the web; empty for anything else, such as javascript:."""
    url = value.strip() if isinstance(value, str) else ""
    if _IN_URL.search(url):
        return ""
    parts = split_url(url)
    there = parts.hostname and parts.port != 0
    return url if parts.scheme.lower() in {"http", "https"} and there else ""


def passages(rows: Iterable[ResultRow], *, by: str, topic: str, wanted: ReadFilters, limit: int) -> tuple[Passage, ...]:
    """At most `limit` passages of rows that say something, from the requested hosts.

    A passage's id is its URL; without one, or where an earlier passage has it, what it says makes the difference.
    """
    kept = [row for row in rows if (row.title or row.text) and on_wanted_host(row.url, wanted)]
    kept = list(dict.fromkeys(kept))[:limit]
    urls = [row.url for row in kept]
    return tuple(
        Passage(
            id=row.url if row.url and row.url not in urls[:place] else f"{row.url or by}#{_digest(row)}",
            source=topic,
            title=row.title[:MAX_TITLE],
            text=row.text[:MAX_TEXT],
            url=row.url,
            date=row.date,
            score=row.score,
            rank=place + 1,
        )
        for place, row in enumerate(kept)
    )


def _digest(row: ResultRow) -> str:
    return hashlib.sha256(f"{row.title}\n{row.text}".encode()).hexdigest()[:16]


def site_operators(wanted: ReadFilters, *, without: str = "-site:", room: int) -> str:
    """Sites as search engines take them inside a query, in at most `room` characters: `(site:a OR site:b) -site:c`.

    Sites that do not fit are left out here; `passages` holds to all of them.
    """
    query = ""
    for site in wanted.sites:
        longer = f"{query} OR site:{bare_site(site)}" if query else f"site:{bare_site(site)}"
        query = longer if len(longer) + 2 <= room else query
    query = f"({query})" if " OR " in query else query
    for site in wanted.not_sites:
        longer = f"{query} {without}{bare_site(site)}".strip()
        query = longer if len(longer) <= room else query
    return query
