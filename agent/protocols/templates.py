"""Templates of what the environment says: which names they may hold, and what stands for each."""

import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent.evidence import Passage

_PASSAGE: Final = Passage(id="", source="", title="", text="")


@dataclass(frozen=True)
class Told:
    """What one query found, as the policy is told it."""

    query: str
    lines: tuple[str, ...]
    """Its passages, each as the protocol shows it."""
    written: str = ""
    """The function call as the policy wrote it."""

    def fill(self, each: str, *, joiner: str, nothing: str) -> str:
        """The template around the passages of one query."""
        passages = joiner.join(self.lines) or nothing.replace("{query}", self.query)
        return each.format(passages=passages, count=len(self.lines), written=self.written, **query_fields(self.query))


def calls_of(told: Sequence[Told]) -> list[list[Told]]:
    """The queries of each function call, together.

    Calls that are written alike are told apart by their first query, which comes again.
    """
    calls: list[list[Told]] = []
    for one in told:
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


def check_templates(
    *, passage: str, parent: str, dated: str, head: str, each: str, each_call: str, rejected: str
) -> None:
    """Whether every name in the templates means something.

    Raises:
        ValueError: one does not; the sentence says which there are.
    """
    shown = {*passage_fields(_PASSAGE, dated="", head=""), *query_fields("")}
    _check("passage", passage, shown)
    _check("parent", parent, shown)
    _check("dated", dated, {"date"})
    _check("head", head, {"title"})
    _check("rejected", rejected, {"why", "why_json", "written"})
    _check("each", each, {"passages", "count", "written", *query_fields("")})
    _check("each_call", each_call, {"passages", "written"})


def _check(key: str, template: str, known: set[str]) -> None:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise ValueError(f"{key} is no template: {error}; write {{{{ and }}}} for braces") from error
    if strange := [name for name in names if name not in known]:
        there = ", ".join(f"{{{name}}}" for name in sorted(known))
        raise ValueError(f"{key} holds {{{strange[0]}}}, which means nothing; there are: {there}")
