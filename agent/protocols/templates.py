"""Templates of prompts and of what the environment says: which names they may hold, and what each becomes."""

import json
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.evidence import Passage

_PASSAGE: Final = Passage(id="", source="", title="", text="")


@dataclass(frozen=True)
class QueryObservation:
    """What one query found, as the policy reads it."""

    query: str
    lines: tuple[str, ...]
    """Its passages, each as the protocol shows it."""
    written: str = ""
    """The function call as the policy wrote it."""

    def fill(self, each: str, *, joiner: str, nothing: str) -> str:
        """The template around the passages of one query."""
        passages = joiner.join(self.lines) or nothing.replace("{query}", self.query)
        return each.format(passages=passages, count=len(self.lines), written=self.written, **query_fields(self.query))


def calls_of(queries: Sequence[QueryObservation]) -> list[list[QueryObservation]]:
    """The queries of each function call, together.

    Calls that are written alike are distinguished by their first query, which comes again.
    """
    calls: list[list[QueryObservation]] = []
    for one in queries:
        if calls and one.written == calls[-1][0].written and one.query != calls[-1][0].query:
            calls[-1].append(one)
        else:
            calls.append([one])
    return calls


def passage_fields(passage: Passage, *, dated: str, head: str) -> dict[str, object]:
    """What stands for each name in the template of a passage."""
    said = {
        "source": passage.source,
        "title": passage.title,
        "text": passage.text,
        "url": passage.url,
    }
    return {
        **said,
        **{f"{name}_json": as_json(value) for name, value in said.items()},
        "number": passage.number,
        "node": passage.node,
        "date": dated.format(date=passage.date) if passage.date else "",
        "head": head.format(title=passage.title) if passage.title else "",
    }


def query_fields(query: str) -> dict[str, object]:
    return {"query": query, "query_json": as_json(query)}


def as_json(text: str) -> str:
    """The text as a string of JSON."""
    return json.dumps(text, ensure_ascii=False)


_SHOWN: Final = frozenset({*passage_fields(_PASSAGE, dated="", head=""), *query_fields("")})
_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "passage": _SHOWN,
    "parent": _SHOWN,
    "dated": frozenset({"date"}),
    "head": frozenset({"title"}),
    "rejected": frozenset({"why", "why_json", "written"}),
    "each": frozenset({"passages", "count", "written", *query_fields("")}),
    "each_call": frozenset({"passages", "written"}),
    "fill": frozenset({"opening", "node"}),
    "ask_fill": frozenset({"opening", "closing", "node", "skip"}),
    "force": frozenset({"opening", "closing"}),
    "failed": frozenset({"node", "source"}),
    "parent_nothing": frozenset({"node"}),
}
"""Template of a protocol → the names that it may hold."""
TEMPLATES: Final = tuple(_KNOWN)


def check_templates(templates: Mapping[str, str]) -> None:
    """Whether every name in the templates means something.

    Raises:
        ValueError: one does not; the sentence says which there are.
    """
    for key, template in templates.items():
        _check(key, template, _KNOWN[key])


def _check(key: str, template: str, known: frozenset[str]) -> None:
    try:
        parts = [part for part in string.Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise ValueError(f"{key} is no template: {error}; write {{{{ and }}}} for braces") from error
    names = [str(name) for _, name, _, _ in parts]
    if strange := [name for name in names if name not in known]:
        there = ", ".join(f"{{{name}}}" for name in sorted(known))
        raise ValueError(f"{key} holds {{{strange[0]}}}, which means nothing; choose from: {there}")
    if any(form or conversion for _, _, form, conversion in parts):
        raise ValueError(f"{key} says how a name is written, with : or !; write the name alone")


@dataclass(frozen=True)
class TextPiece:
    """A piece of a prompt. An engine may encode a control piece as a control token; all else is plain text."""

    text: str
    control: bool = False


def split_marks(text: str, marks: Iterable[str]) -> list[TextPiece]:
    """The text in pieces; those that are one of `marks` are controls."""
    known = sorted({mark for mark in marks if mark}, key=len, reverse=True)
    if not text:
        return []
    if not known:
        return [TextPiece(text)]
    parts = re.split(f"({'|'.join(map(re.escape, known))})", text)
    return [TextPiece(part, control=place % 2 == 1) for place, part in enumerate(parts) if part]


def fill_in(template: str, values: Mapping[str, list[TextPiece]], *, marks: Iterable[str]) -> list[TextPiece]:
    """A template's own text, split at its marks, with `{name}` replaced by the pieces of that name."""
    if not values:
        return split_marks(template, marks)
    marks = tuple(marks)
    pieces: list[TextPiece] = []
    parts = re.split(rf"\{{({'|'.join(map(re.escape, values))})\}}", template)
    for place, part in enumerate(parts):
        pieces += values[part] if place % 2 else split_marks(part, marks)
    return pieces
