"""How policies write plans: from the text between the search tags to drafts. `agent.plan` says whether they can run.

What can be read without doubt is read; the rest raises `PlanError` with one sentence that names the line and the fix.
A line may be as long as a turn, so every pattern takes time in proportion to it: none begins with a repetition that
could be tried from each of its characters, and no two that take the same characters follow one another.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from agent.errors import PlanError

ID: Final = r"(?:[A-Za-z][0-9]{2}|[A-Za-z0-9]{1,2})"
MAX_QUERY_CHARS: Final = 400

_ARROW: Final = re.compile(r"(?<![-—–=－＝])[-—–=－＝]+[>＞]|[→⇒⟶➔➜]")
_LABELLED: Final = re.compile(rf"(?P<id>{ID})\s*(?:：|:(?![\d/]))\s*(?P<rest>.*)")
_BULLET: Final = re.compile(r"[-*•‣]\s+")
_NUMBERED: Final = re.compile(r"(\d{1,2})[.)]\s+(?=\S)")
_HEADER: Final = re.compile(r"(?P<what>nodes|edges)\s*(?:[:：]\s*(?P<rest>.*))?", re.IGNORECASE)
_SHORT_EDGE: Final = rf"#?{ID}\s*(?:[,，]\s*#?{ID}\s*)*(?:[-—–=－＝]+[>＞]|[→⇒⟶➔➜])"
_INNER_HEADER: Final = re.compile(rf"(?<=[\s)）;；])(?=edges\s*[:：]\s*(?:$|none|{_SHORT_EDGE}))", re.IGNORECASE)
_NEXT: Final = re.compile(rf"(?:(?<=[)）])(?:\s*[,，;；.])?|[;；])\s*(?={ID}\s*[:：]\s|{_SHORT_EDGE})")
_NO_EDGES: Final = {"", "none", "(none)", "-", "n/a", "no edges"}
_WORD: Final = re.compile(r"[^\W\d_][\w-]*")
_DATE: Final = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
_FILTER: Final = re.compile(  # a bracket such as "(not Paris)" or "(kind of)" belongs to the query
    r"(after|before|site|lang|not(?=(?:[\s:=]*\s|[:=])\S+\.\w)|recent(?=[\s:=]+(?:day|week|month|year)$)"
    r"|kind(?=[\s:=]+(?:general|news|science|finance)$))(?:\s*[:=]|[^\S ]* )\s*(\S+)",
    re.IGNORECASE,
)
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_FILTERS: Final = "after DATE, before DATE, site HOST, not HOST, recent day|week|month|year, lang CODE, kind NAME"
_QUOTES: Final = {'"': '"', "“": "”", "＂": "＂"}
_PAIRS: Final = {")": "(", "）": "（"}


@dataclass(frozen=True)
class DraftQuery:
    """One query as it was written. `id` is None where none was, `source` where none was named."""

    line: str
    query: str
    id: str | None = None
    source: str | None = None
    filters: tuple[tuple[str, str], ...] = ()
    entities: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    written: str = ""
    """The function call that it is from."""


@dataclass(frozen=True)
class DraftEdge:
    """An arrow from each of its parents to each of its children."""

    line: str
    parents: tuple[str, ...]
    children: tuple[str, ...]


@dataclass
class DraftPlan:
    queries: list[DraftQuery] = field(default_factory=list[DraftQuery])
    edges: list[DraftEdge] = field(default_factory=list[DraftEdge])


def read_query(text: str) -> DraftPlan:
    """Read one query, which is the whole text."""
    query = text.strip()
    return DraftPlan([DraftQuery(query, checked(query, query))] if query else [])


def read_queries(text: str, *, separator: str) -> DraftPlan:
    """Read `one, two, "three, with a comma"`; a line break separates too. Other separators than a comma stand alone."""
    if separator == ",":
        queries = [_unquoted(item) for line in text.splitlines() for item in _split(line)]
    else:
        queries = [item.strip() for item in text.split(separator)]
    return DraftPlan([DraftQuery(line=query, query=checked(query, query)) for query in queries if query])


def read_lines(text: str, *, sources: Collection[str]) -> DraftPlan:
    """Read one query a line, with ids, sources, filters and edges.

    Raises:
        PlanError: a line that cannot be read without doubt.
    """
    drafts = DraftPlan()
    for line in _lines(text):
        if edges := _edges(line):
            drafts.edges += edges
        else:
            drafts.queries.append(_query(line, sources=sources))
    return drafts


def _lines(text: str) -> Iterator[str]:
    """The lines that say something: without headers and list marks, with one query each."""
    lines = [line for raw in text.splitlines() for piece in _INNER_HEADER.split(raw) if (line := piece.strip())]
    lines = [_BULLET.sub("", line, count=1) if _BULLET.match(line) else line for line in lines]
    lines = list(_without_headers(lines))
    numbers = [match[1] if (match := _NUMBERED.match(line)) else "" for line in lines]
    if len(lines) > 1 and numbers == [str(n) for n in range(1, len(lines) + 1)]:
        lines = [_NUMBERED.sub("", line, count=1) for line in lines]  # a list; "1. FC Köln" alone is a query
    for line in lines:
        parts = [part for piece in _NEXT.split(line) if (part := piece.strip(" \t;；"))]
        if len(parts) > 1 and not all(_LABELLED.match(part) or _ARROW.search(part) for part in parts):
            raise PlanError(f"line {line!r} seems to hold several queries; write one query a line")
        yield from parts


def _without_headers(lines: Iterable[str]) -> Iterator[str]:
    among_edges = False
    for line in lines:
        header = _HEADER.fullmatch(line)
        rest = (header["rest"] or "").strip() if header else line
        if header:
            among_edges = header["what"].casefold() == "edges"
        if (header or among_edges) and rest.casefold() in _NO_EDGES:
            continue
        yield rest if _LABELLED.match(rest) or _ARROW.search(rest) else line


def _edges(line: str) -> list[DraftEdge]:
    """Read `A, C -> B`, `A -> B -> C`, `A -> B, C -> B`, `A -> B; C -> B`; nothing if the line is no edge.

    Between two arrows, the first id ends one edge and the others begin the next.
    """
    if _LABELLED.match(line) or not _ARROW.search(line):
        return []
    edges: list[DraftEdge] = []
    for chain in re.split(r"[;；]", line.rstrip(" .,，;；")):
        written = [group.strip() for group in _ARROW.split(chain)]
        groups = [_ids(group) for group in written]
        if len(groups) < 2 or not all(groups):
            if any(len(group.split()) > 1 for group in written):
                return []  # "Paris → London train time" is a query
            raise PlanError(f"edge {line!r} cannot be read; write edges as 'A, C -> B', with the ids of two queries")
        parents = groups[0]
        for at, group in enumerate(groups[1:], start=2):
            children = group if at == len(groups) else group[:1]
            edges.append(DraftEdge(line, tuple(parents), tuple(children)))
            parents = group[1:] or group
    return edges


def _ids(text: str) -> list[str]:
    """The ids of `A, C`, `[A, C]` or `Node A and Node C`; empty if it is anything else."""
    plain = re.sub(r"(?i)\bnodes?\s+|#", "", text).strip(" \t[](){}")
    words = [word.strip() for word in re.split(r"[,，、&+]|(?<!\s)\s+and\s+", plain)]
    return words if all(re.fullmatch(r"\w{1,12}", word) for word in words) else []


def _query(line: str, *, sources: Collection[str]) -> DraftQuery:
    label = _LABELLED.fullmatch(line)
    body = label["rest"] if label else line
    query, source, filters = _split_query(body.rstrip(), line, sources=sources)
    return DraftQuery(line, checked(query, line), label["id"] if label else None, source, filters)


def checked(query: str, line: str) -> str:
    """A query that can be searched.

    Raises:
        PlanError: it is empty or too long.
    """
    if not query:
        raise PlanError(f"line {line!r} has no query; write what to search for before the source")
    if len(query) > MAX_QUERY_CHARS:
        raise PlanError(f"line {line[:40]!r}… has a query of {len(query)} characters; write at most {MAX_QUERY_CHARS}")
    return query


def _split_query(
    body: str, line: str, *, sources: Collection[str]
) -> tuple[str, str | None, tuple[tuple[str, str], ...]]:
    """Take the source and the filters off the end of a query. Brackets that name neither belong to the query."""
    text = body.rstrip(" .;；")
    at = _last_bracket(text)
    if at is None:
        return body, None, ()
    query = text[:at].rstrip()
    parts = [part.strip() for part in re.split(r"[,，]", text[at + 1 : -1])]
    known: list[str] = []
    filters: list[str] = []
    other: list[str] = []
    for part in parts:
        kind = known if _is_source(part, sources) else filters if _FILTER.fullmatch(part) else other
        kind.append(part)
    if len(known) > 1:
        raise PlanError(f"line {line!r} names the sources {known[0]!r} and {known[1]!r}; write one line for each")
    if known and other:
        raise PlanError(f"line {line!r}: {other[0]!r} is no filter; there are: {_FILTERS}")
    if known or (filters and not other):
        return query, known[0] if known else None, tuple(_filter(part, line) for part in filters)
    if len(other) == 1 and _WORD.fullmatch(other[0]):  # it looks like a source; whether there is one, the plan knows
        return query, other[0], tuple(_filter(part, line) for part in filters)
    return body, None, ()  # "(2024)", "(Paris, France)"


def _is_source(word: str, sources: Collection[str]) -> bool:
    return word.casefold() in {source.casefold() for source in sources}


def _last_bracket(text: str) -> int | None:
    """Where the bracket opens that the text ends with; None if it ends with none."""
    if not text or text[-1] not in _PAIRS:
        return None
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] in _PAIRS) - (text[at] in _PAIRS.values())
        if depth == 0:
            return at
    return None


def _filter(text: str, line: str) -> tuple[str, str]:
    match = _FILTER.fullmatch(text)
    assert match is not None, text
    name, value = match[1].lower(), match[2]
    if name in ("after", "before") and not _is_date(value):
        raise PlanError(f"line {line!r}: {value!r} is no date; write it as 2026-01-31")
    return name, value if name in ("after", "before") else value.lower()


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(f"{text}-01-01"[:10])
    except ValueError:
        return False
    return True


def _split(line: str) -> Iterator[str]:
    """Cut at commas, but not inside double quotes, and not inside a number such as 1,000."""
    marks = (",", "，")
    last = {opening: line.rfind(closing) for opening, closing in _QUOTES.items()}
    start = at = 0
    while at < len(line):
        closing = line.find(_QUOTES[line[at]], at + 1) if at < last.get(line[at], 0) else -1
        mark = next((mark for mark in marks if line.startswith(mark, at)), "")
        if closing > 0:
            at = closing + 1
        elif mark and not _THOUSANDS.match(line, at):
            yield line[start:at].strip()
            start = at = at + len(mark)
        else:
            at += 1
    yield line[start:].strip()


def _unquoted(item: str) -> str:
    closing = _QUOTES.get(item[:1])
    inner = item[1:-1]
    if closing is not None and len(item) > 1 and item.endswith(closing) and closing not in inner:
        return inner.strip()
    return item
