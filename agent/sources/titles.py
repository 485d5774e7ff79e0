"""Titles that say what is searched for: a page named by its title, a section whose heading is a question like it."""

import re
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from agent.checks.tokens import stem, tokens
from agent.evidence import BETWEEN_TITLES, Passage

TITLES: Final = 100
"""Passages whose titles are compared with a short query."""
_LONGEST_TITLE: Final = 10
"""Words of a query that may be a title."""
_LONGEST_QUESTION: Final = 30
"""Words of a query that a section may answer."""
_BRACKETS: Final = re.compile(r"\s*\([^()]*\)\s*$")
_FILLERS: Final = frozenset(
    "a an and are as at be been but by for from if in into is it its no not of on or such that the their then there "
    "these they this to was were will with you your we our he she his her us them "
    "what who which where when how do does did can could have has had i me my s tell cairn".split()
)
"""Words that only ask, and whom. (bm25s has a list of its own; the loop compares titles and does not load it.)"""
_WEAK: Final = frozenset(
    "all also any call ever exact get give go good happen just kind let like look made make many mean mine more "
    "most much need new now only other own please possible really see set so some someone something take thing "
    "things up use used using want way without work works".split()
)
"""Words that say little about what is searched for."""
_KINDS: Final = frozenset("where when long many much".split())
"""Words that say what kind of answer is wanted: a section that answers has them in its heading."""
_INITIALS: Final = re.compile(r"[b-df-hj-np-tv-z]{2,}s")
_FITS: Final = 0.45
"""How well a section must fit. Of 60 questions about the manual, 38 had one that did; for 34 it was right."""
_FEW: Final = 3
"""Words of a question in which none can be another: "How long are pages cached?" isn't about searches."""
Found = TypeVar("Found")


class Titled(Protocol):
    """A passage, or the record of one."""

    @property
    def title(self) -> str: ...

    @property
    def text(self) -> str: ...


def named_first(ranked: list[Found], query: str, *, of: Callable[[Found], Titled]) -> list[Found]:
    """Of the best hits, those whose title is the query come first: who asks for a name means the page about it.

    Behind them come those whose title differs in words that only ask ("What's Cairn?" and "What is Cairn?"), then
    sections that answer a question like it.
    """
    wanted = _Words(query)
    if len(wanted.words) > _LONGEST_QUESTION:
        return ranked
    alike = [wanted.likeness(of(hit)) for hit in ranked[:TITLES]]
    if not any(alike):
        return ranked
    order = sorted(range(len(alike)), key=lambda at: -alike[at])
    return [*(ranked[at] for at in order), *ranked[TITLES:]]


def own_section(passages: Sequence[Passage], question: str) -> Passage | None:
    """The section of a document whose heading is the question, or one that it answers, too; None: there is none."""
    wanted = _Words(question)
    sections = [passage for passage in passages if _is_answer(passage.title)]
    best = max(sections, key=wanted.likeness, default=None)
    return best if best is not None and wanted.likeness(best) > 0 else None


def is_its_question(section: Titled, question: str) -> bool:
    """Whether a section's heading is the question, but for words that only ask."""
    return _Words(question).likeness(section) >= 1


def _is_answer(title: str) -> bool:
    """Whether it is of a section of a document, and a question."""
    return BETWEEN_TITLES in title and title.rstrip().endswith("?")


class _Words:
    """Of a query or a question, which titles are compared with."""

    def __init__(self, text: str) -> None:
        self.words = _words(text)
        self._content = _content(self.words)
        self._strong = _content(self.words, beside=_WEAK)
        self._kind = _KINDS.intersection(self.words)

    def likeness(self, passage: Titled) -> float:
        """2 where the title is the query, 1 where what it is about is the same, less where a section answers it."""
        title, heading = passage.title, passage.title.rpartition(BETWEEN_TITLES)[2]
        if len(self.words) <= _LONGEST_TITLE:
            parts = [_words(part) for part in {title, _BRACKETS.sub("", title), heading}]
            if self.words in parts:
                return 2
            if self._content in map(_content, parts):
                return 1
        return self._answered(heading, passage.text) if _is_answer(title) else 0

    def _answered(self, question: str, text: str) -> float:
        """How well the section under a question fits, below 1; 0 where it is about something else.

        Half of it is how much of the question its heading has; the rest, how much it has with its first paragraph, and
        how much of the heading is in the question.
        """
        words = _words(question)
        heading = _content(words, beside=_WEAK)
        shared = len(self._strong & heading)
        if not shared or not self._kind <= set(words):
            return 0
        said = heading.union(map(_stem, _words(text.partition("\n\n")[0])))
        most, has = len(self._strong), len(self._strong & said)
        if has < most <= _FEW and heading - self._strong:
            return 0
        fit = 0.5 * shared / most + 0.3 * has / most + 0.2 * shared / len(heading)
        return min(fit, 0.99) if fit >= _FITS else 0


def _words(text: str) -> list[str]:
    """Its words in order, without case."""
    return [token.text for token in tokens(text) if not token.mark]


def _content(found: Sequence[str], *, beside: frozenset[str] = frozenset()) -> frozenset[str]:
    """The stems of the words that carry the question, without those `beside` them; of all words where none does."""
    carrying = [word for word in found if word not in _FILLERS]
    return frozenset(map(_stem, [word for word in carrying if word not in beside] or carrying or found))


def _stem(word: str) -> str:
    """As claims are compared, but "PDFs" is "PDF", too."""
    return word[:-1] if _INITIALS.fullmatch(word) else stem(word)
