"""What a model decides in one turn, whatever its rung, and how that is written in a protocol."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.protocols.base import TextProtocol

MOST_QUERY_CHARS: Final = 300
_SPACE: Final = re.compile(r"\s+")
_SPECIAL: Final = re.compile(r"[()\[\]{}<>\"“”]|#(?=\w)|(?<![^\W\d_])#|->|→")
"""What a plan reads as a source, a filter, a reference (#A, but not C#) or an edge."""
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class SearchMove:
    """Search for these."""

    queries: tuple[str, ...]


@dataclass(frozen=True)
class CitedSentence:
    """One sentence of evidence with the numbers of the passages that it cites."""

    text: str
    cites: tuple[int, ...] = ()


@dataclass(frozen=True)
class AnswerMove:
    """Answer this, citing these."""

    text: str
    evidence: tuple[CitedSentence, ...] = ()


Move = SearchMove | AnswerMove


def queries_of(texts: Iterable[str], *, most: int) -> tuple[str, ...]:
    """Queries on one line each, without repeats and without what a plan would read as more than words."""
    cleaned = (_SPACE.sub(" ", _SPECIAL.sub(" ", text)).strip(" ,;:")[:MOST_QUERY_CHARS] for text in texts)
    by_fold: dict[str, str] = {}
    for query in cleaned:
        if any(character.isalnum() for character in query):
            by_fold.setdefault(query.casefold(), query)
    return tuple(by_fold.values())[:most]


def can_spell(protocol: TextProtocol) -> bool:
    """Whether moves can be written in a protocol: one of our own that searches, without texts of other authors."""
    searches = {"search", "answer"} <= protocol.tags.keys()
    return searches and protocol.plan != "calls" and bool(protocol.instructions) and not protocol.foreign


def spelled(move: Move, protocol: TextProtocol) -> str:
    """The move as the protocol's blocks; the loop reads them as it reads a trained policy's."""
    if isinstance(move, SearchMove):
        return f"{protocol.opening('search')}{_plan(move.queries, protocol)}{protocol.closing('search')}"
    text = _unmarked(move.text, protocol)
    if protocol.answer_in == "boxed":
        text = "\\boxed{" + text.replace("{", "(").replace("}", ")") + "}"
    answer = f"{protocol.opening('answer')}{text}{protocol.closing('answer')}"
    return _evidence(move.evidence, protocol) + answer


def _plan(queries: Sequence[str], protocol: TextProtocol) -> str:
    match protocol.plan:
        case "lines":
            return "\n" + "".join(f"{_LETTERS[at]}: {query}\n" for at, query in enumerate(queries[: len(_LETTERS)]))
        case "queries" if protocol.separator == ",":
            return ", ".join(f'"{query}"' for query in queries)
        case "queries":
            return protocol.separator.join(query.replace(protocol.separator, " ") for query in queries)
        case "graph":
            return json.dumps({"query": queries[0]}, ensure_ascii=False)
        case _:
            return queries[0]


def _evidence(evidence: Sequence[CitedSentence], protocol: TextProtocol) -> str:
    if "evidence" not in protocol.tags or not evidence:
        return ""
    lines: list[str] = []
    for statement in evidence:
        marks = "".join(f"[{number}]" for number in statement.cites) if protocol.numbered else ""
        text = _SPACE.sub(" ", _unmarked(statement.text, protocol)).strip()
        lines.append(f"- {text} {marks}".rstrip() if protocol.numbered else text)
    return f"{protocol.opening('evidence')}\n" + "\n".join(lines) + f"\n{protocol.closing('evidence')}\n"


def _unmarked(text: str, protocol: TextProtocol) -> str:
    """The text without the protocol's own marks: a model that quotes one ends no block."""
    for mark in protocol.all_marks:
        if len(mark) > 1:
            text = text.replace(mark, " ")
    return text.strip()
