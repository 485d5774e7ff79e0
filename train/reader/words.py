"""The reader's own words: text in pieces with their places, and a vocabulary of what is common to many worlds.

Names of one world are in no vocabulary: they are distinguished by being the same or another word than the next one.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

PAD: Final = 0
NUMBER: Final = 1
FIRST_NAME: Final = 2
NAMES: Final = 64
"""Ids that unknown words are given at random, so that none of them means anything."""

_PIECE: Final = re.compile(r"\d+|[^\W\d_]+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Word:
    """One piece, in lower case; `text[start:end]` is how it was written."""

    text: str
    start: int
    end: int

    @property
    def is_number(self) -> bool:
        return self.text.isdigit()

    @property
    def is_letters(self) -> bool:
        return self.text.isalpha()


def split(text: str) -> list[Word]:
    """Letters, digits and single marks; white space is left out."""
    return [Word(found[0].lower(), found.start(), found.end()) for found in _PIECE.finditer(text)]


class ReaderVocabulary:
    """Ids of common words. Numbers share one id (their value is an input, too), and so do unknown words, in a way."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        self._ids = {word: place for place, word in enumerate(self.words, start=FIRST_NAME + NAMES)}

    @classmethod
    def common(cls, texts: Iterable[Iterable[str]], *, share: float) -> "ReaderVocabulary":
        """Every piece that is in at least this share of the worlds; `texts` has one entry a world."""
        worlds, found = 0, Counter[str]()
        for texts_of_world in texts:
            worlds += 1
            found.update({word.text for text in texts_of_world for word in split(text)})
        return cls(sorted(w for w, count in found.items() if count >= share * worlds and not w.isdigit()))

    def __len__(self) -> int:
        return FIRST_NAME + NAMES + len(self.words)

    def known(self, word: Word) -> int | None:
        """The word's id; None for a name."""
        return NUMBER if word.is_number else self._ids.get(word.text)
