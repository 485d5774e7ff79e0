"""Titles that say what is searched for: a page that is named by its title, a section whose heading is the question."""

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from agent.checks.tokens import stem, tokens
from agent.evidence import BETWEEN_TITLES, Passage

TITLES: Final = 100
"""Passages whose titles are compared with a short query."""
_LONGEST_TITLE: Final = 10
"""Words of a query that may be a title."""
_BRACKETS: Final = re.compile(r"\s*\([^()]*\)\s*$")
_FILLERS: Final = frozenset(
    "a an and are as at be been but by for from if in into is it its no not of on or such that the their then there "
    "these they this to was were will with you your we our he she his her us them "
    "what who which where when how do does did can could have has had i me my s tell cairn".split()
)
"""Words that only ask, and whom. (bm25s has a list of its own; the loop compares titles and does not load it.)"""
Found = TypeVar("Found")


def named_first(ranked: list[Found], query: str, *, title: Callable[[Found], str]) -> list[Found]:
    """Of the best hits, those whose title is the query come first: who asks for a name means the page about it.

    Behind them come those whose title differs in words that only ask: "What's Cairn?" and "What is Cairn?".
    """
    named = _words(query)[: _LONGEST_TITLE + 1]
    if len(named) > _LONGEST_TITLE:
        return ranked
    alike = [_likeness(title(hit), named) for hit in ranked[:TITLES]]
    if not any(alike):
        return ranked
    order = sorted(range(len(alike)), key=lambda at: -alike[at])
    return [*(ranked[at] for at in order), *ranked[TITLES:]]


def own_section(passages: Sequence[Passage], question: str) -> Passage | None:
    """The section of a document whose heading is the very question; None where there is none."""
    named = _words(question)
    sections = (p for p in passages if BETWEEN_TITLES in p.title and p.title.rstrip().endswith("?"))
    return next((p for p in sections if _likeness(p.title, named)), None)


def _likeness(title: str, named: Sequence[str]) -> int:
    """2 where the title is the query, 1 where what it is about is the same, else 0."""
    parts = [_words(part) for part in (title, _BRACKETS.sub("", title), title.rpartition(BETWEEN_TITLES)[2])]
    if named in parts:
        return 2
    return int(_content(named) in map(_content, parts))


def _words(text: str) -> list[str]:
    """Its words in order, without case."""
    return [token.text for token in tokens(text) if not token.mark]


def _content(found: Sequence[str]) -> frozenset[str]:
    """The stems of the words that carry the question; of all words where none of them does."""
    return frozenset(stem(word) for word in found if word not in _FILLERS) or frozenset(map(stem, found))
