"""What the reader reads, a question and a few pages in words with their places, and the answers that need no page.

Not tensors yet.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.evidence import Passage
from agent.world import Question
from train.evaluation.normalisations import squad
from train.reader.words import FIRST_NAME, NAMES, ReaderVocabulary, Word, split

Kind = Literal[0, 1, 2]
QUESTION: Final[Kind] = 0
HEAD: Final[Kind] = 1
TEXT: Final[Kind] = 2

UNKNOWN: Final = "I do not know."
MOST_VALUE: Final = 4000.0
"""The model sees numbers as a share of this one, at most 1."""


@dataclass(frozen=True, slots=True)
class ReaderPage:
    """One passage as the reader sees it: where it is from, and what it says."""

    head: str
    text: str

    @classmethod
    def of(cls, passage: Passage) -> "ReaderPage":
        return cls(head_of(passage.source, passage.date, passage.title), passage.text)

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.head) + len(self.text)


def head_of(source: str, date: str, title: str) -> str:
    return " ".join(part for part in (source, date, title) if part)


def whole_pages(pages: Sequence[ReaderPage], *, chars: int) -> list[ReaderPage]:
    """The first pages that fit, each whole; a later and shorter one does not take the place of one that does not."""
    kept: list[ReaderPage] = []
    for page in pages:
        if page.size > chars:
            break
        chars -= page.size
        kept.append(page)
    return kept


@dataclass(frozen=True, slots=True)
class Span:
    """Words `first` to `last` of a sheet, both included."""

    first: int
    last: int


@dataclass
class Sheet:
    """Question and pages as one row of words, ready for the model. All lists have one entry a word."""

    texts: list[str]
    """The question, then head and text of each page."""
    words: list[Word] = field(default_factory=list[Word])
    text_of: list[int] = field(default_factory=list[int])
    kinds: list[int] = field(default_factory=list[int])
    segments: list[int] = field(default_factory=list[int])
    """0 for the question, n for page n."""

    def written(self, span: Span) -> str:
        """What stands at a span, as it was written."""
        text = self.texts[self.text_of[span.first]]
        return text[self.words[span.first].start : self.words[span.last].end]

    def ids(self, vocabulary: ReaderVocabulary, rng: random.Random) -> list[int]:
        """An id for each word; the same name has the same one of the ids that mean nothing."""
        names: dict[str, int] = {}
        ids: list[int] = []
        for word in self.words:
            known = vocabulary.known(word)
            if known is None:
                known = names.setdefault(word.text, FIRST_NAME + rng.randrange(NAMES))
            ids.append(known)
        return ids

    @cached_property
    def keys(self) -> list[int]:
        """A number for each different word of letters or digits, from 1; 0 for marks."""
        numbers: dict[str, int] = {}
        return [
            numbers.setdefault(word.text, len(numbers) + 1) if word.is_letters or word.is_number else 0
            for word in self.words
        ]

    @property
    def values(self) -> list[float]:
        """Of numbers, 0 to 1; 0 for words."""
        return [min(int(w.text), MOST_VALUE) / MOST_VALUE if w.is_number else 0.0 for w in self.words]

    def find(self, answer: str) -> list[Span]:
        """Every place where an answer stands, word for word, within one text."""
        wanted = [word.text for word in split(answer)]
        length = len(wanted)
        return [
            Span(at, at + length - 1)
            for at in range(len(self.words) - length + 1)
            if length
            and self.words[at].text == wanted[0]
            and self.text_of[at] == self.text_of[at + length - 1]
            and [word.text for word in self.words[at : at + length]] == wanted
        ]


def lay_out(question: str, pages: Sequence[ReaderPage], *, most_words: int) -> Sheet:
    """Put question and pages side by side; words beyond the last that the model takes are left out."""
    sheet = Sheet(texts=[question, *(text for page in pages for text in (page.head, page.text))])
    for place, text in enumerate(sheet.texts):
        kind = QUESTION if place == 0 else HEAD if place % 2 else TEXT
        for word in split(text)[: most_words - len(sheet.words)]:
            sheet.words.append(word)
            sheet.text_of.append(place)
            sheet.kinds.append(kind)
            sheet.segments.append((place + 1) // 2)
    return sheet


@dataclass(frozen=True)
class Classes:
    """Answers that need no page: counts, what every world knows, and that it is not known."""

    answers: tuple[str, ...]

    def right(self, question: Question) -> list[int]:
        """The classes that answer a question."""
        if question.unanswerable:
            return [self.answers.index(UNKNOWN)]
        gold = set(map(squad, question.answers))
        return [place for place, answer in enumerate(self.answers) if squad(answer) in gold]


class ReaderShape(BaseModel):
    """Of the network; see `train.reader.reading`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int
    layers: int
    heads: int
    inner: int
    most_words: int = Field(gt=32)
    """Of a question with its pages; what is beyond is not read."""
