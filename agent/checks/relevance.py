"""Passages that have nothing to do with what was searched: not one content word of the query or the question."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from agent.checks.words import FUNCTION
from agent.evidence import BETWEEN_TITLES, Passage

_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")
_STEM: Final = 4
"""Letters that two forms of one word share."""
_DIGIT: Final = re.compile(r"\d")


def without_irrelevant(
    found: Mapping[str, Sequence[Passage]], queries: Mapping[str, str], question: str
) -> dict[str, list[Passage]]:
    """What each node found, without the passages that share no content word with its query or the question.

    Where nothing would be left of all that was found, all of it stays: the words may be those of another language. So
    does what a query without a content word found.
    """
    wanted = content_words(question)
    kept: dict[str, list[Passage]] = {}
    for node, passages in found.items():
        own = content_words(queries.get(node, ""))
        kept[node] = [passage for passage in passages if not own or _shares(passage, own | wanted)]
    return kept if any(kept.values()) else {node: list(passages) for node, passages in found.items()}


def about(passage: Passage, query: str) -> bool:
    """Whether a query names what a passage's document is about: it has each content word of the title."""
    title = content_words(passage.title.partition(BETWEEN_TITLES)[0])
    return bool(title) and title <= content_words(query)


def _shares(passage: Passage, wanted: Collection[str]) -> bool:
    return not content_words(f"{passage.title} {passage.text}").isdisjoint(wanted)


def content_words(text: str) -> frozenset[str]:
    """Stems of the words that say something, folded; numbers are whole."""
    found = (word for word in _WORD.findall(text.casefold()) if word not in FUNCTION)
    return frozenset(word if _DIGIT.search(word) else word[:_STEM] for word in found)
