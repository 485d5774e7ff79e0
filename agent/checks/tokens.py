"""Words of a text with their places in it, and its sentences. Nothing here knows what a word means."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

import Stemmer

from agent.checks.words import ABBREVIATIONS, IRREGULAR
from agent.sanitize.text import ALONE, MARKS, SIGNS, without_marks

_LETTERS: Final = rf"(?:[^\W\d_][{MARKS}{SIGNS}]*)+"
_WORD: Final = re.compile(
    r"(?<=[a-z\d])-(?=\s?\d{1,2} [A-Z]|\s?[A-Z][a-z]+ \d{1,2}, \d{4})|\d+(?:[.,]\d+)*"
    rf"|[{ALONE}][\u3099\u309a]?|{_LETTERS}(?:['’ʼ](?!s\b){_LETTERS})*"
    r"|['’](?=s\b)s|\||[;:,.!?()–—\"“”%$€£]"
)
"""Numbers, words (a Chinese, Japanese or Thai character is one), the possessive, marks that divide a sentence, and the
hyphen that divides two dates."""
_MARKS: Final = frozenset(("'s", "’s", *'-|;:,.!?()–—"“”%$€£'))
_ENDS: Final = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9À-ÖØ-Þ])|(?<=[。！？])|\n+")
_INITIAL: Final = re.compile(r"(?:\b[A-Z]|\b(?:" + "|".join(map(re.escape, ABBREVIATIONS)) + r"))\.$")
_LONGEST_ABBREVIATION: Final = 8
_LONGEST: Final = 1500
"""Characters of a sentence."""
_STEMMER: Final = cast(Any, Stemmer).Stemmer("english")


@dataclass(frozen=True, slots=True)
class Token:
    """One word or mark. `text` is folded (case, accents, quotes); the place is that of the original."""

    text: str
    stem: str
    start: int
    end: int
    capital: bool = False
    caps: bool = False
    """Capitals alone, two at least: "US" is not "us"."""
    mark: bool = False
    """Punctuation, or the possessive."""

    @property
    def number(self) -> bool:
        return self.text[0].isdecimal()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text: its place there, and its tokens."""

    start: int
    end: int
    tokens: tuple[Token, ...]


@lru_cache(maxsize=20_000)
def fold(word: str) -> str:
    """A word as it is compared: case, accents and look-alike forms do not matter."""
    return without_marks(word.replace("’", "'").replace("ʼ", "'")).casefold()


@lru_cache(maxsize=20_000)
def stem(folded: str) -> str:
    """The stem; an irregular form has that of its base: "wrote" is "write"."""
    return IRREGULAR.get(folded) or str(_STEMMER.stemWord(folded))


def tokens(text: str, *, offset: int = 0) -> tuple[Token, ...]:
    """The tokens of a text, in order; `offset` is added to their places."""
    return tuple(_token(match, offset) for match in _WORD.finditer(text))


def _token(match: re.Match[str], offset: int) -> Token:
    raw = match[0]
    start, end = match.start() + offset, match.end() + offset
    if raw[0].isdecimal():
        number = re.sub(r",(?=\d{3}\b)", "", raw)
        return Token(number, number, start, end)
    if raw in _MARKS:
        return Token(raw.replace("’", "'"), "", start, end, mark=True)
    folded = fold(raw)
    return Token(folded, stem(folded), start, end, capital=raw[0].isupper(), caps=len(raw) > 1 and raw.isupper())


def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text; a very long one is cut."""
    spans = [piece for start, end in sentence_spans(text) for piece in _cut(text, start, end)]
    return tuple(Sentence(start, end, tokens(text[start:end], offset=start)) for start, end in spans)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence; an initial or an abbreviation ("J.", "Dr.", "Jan.") ends none."""
    spans: list[tuple[int, int]] = []
    for start, end in _spans(text):
        if spans and _INITIAL.search(text[max(spans[-1][0], spans[-1][1] - _LONGEST_ABBREVIATION) : spans[-1][1]]):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence that never ends, as in a table without a full stop, is cut: reading takes more than linear time."""
    while end - start > _LONGEST:
        at = text.rfind(" ", start + 1, start + _LONGEST)
        at = at if at > 0 else start + _LONGEST
        yield start, at
        start = at + len(text[at:end]) - len(text[at:end].lstrip())
    yield start, end


def _spans(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for gap in (*_ENDS.finditer(text), None):
        end = len(text) if gap is None else gap.start()
        piece = text[at:end]
        if piece.strip():
            yield at + len(piece) - len(piece.lstrip()), at + len(piece.rstrip())
        at = end if gap is None else gap.end()


def words_of(found: Sequence[Token]) -> list[Token]:
    return [token for token in found if not token.mark]
