"""Which words may stand for each other in a claim and on a page, and how much a word weighs."""

from functools import cache, lru_cache
from typing import Final

from agent.checks.lexicon import KINDS, LIGHT, SAME
from agent.checks.tokens import Token, fold, stem
from agent.checks.wordings import wordings

WORD: Final = 1.0
LIGHT_WORD: Final = 0.5
"""What a word weighs, and one that says little."""
_PREFIX: Final = 5
"""Letters that two stems of one word share at least: "signatur", "signat"."""


def weight(token: Token) -> float:
    return LIGHT_WORD if token.stem in _light() or token.text in KINDS else WORD


@cache
def _light() -> frozenset[str]:
    return frozenset(stem(fold(word)) for word in LIGHT)


@cache
def _alike() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for words in SAME:
        group = frozenset(stem(fold(word)) for word in words.split())
        for word in group:
            table[word] = table.get(word, frozenset()) | group
    return table


@cache
def _senses() -> dict[str, frozenset[str]]:
    """Stem → the relations that it says alone."""
    table: dict[str, set[str]] = {}
    for first, made in wordings().items():
        for wording in made:
            if wording.weight == 1:
                table.setdefault(stem(first.lstrip("=")), set()).add(wording.sense)
    return {word: frozenset(senses) for word, senses in table.items()}


def synonyms(one: str, other: str) -> bool:
    return one == other or other in _alike().get(one, ())


@lru_cache(maxsize=50_000)
def alike(one: str, other: str) -> bool:
    """Whether two stems may mean the same: synonyms, one word in two forms, words of one relation."""
    if synonyms(one, other):
        return True
    shared = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if shared >= _PREFIX and shared >= 0.7 * min(len(one), len(other)):
        return True
    return not _senses().get(one, frozenset[str]()).isdisjoint(_senses().get(other, ()))


def has(token: Token, stems: frozenset[str]) -> bool:
    return token.stem in stems or any(alike(token.stem, other) for other in stems)
