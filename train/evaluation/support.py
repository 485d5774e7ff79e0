"""Whether claims stand in the passages that they cite: an estimate offline, by words.

It knows neither synonyms nor entailment: a paraphrase counts as not found, and a claim that turns a sentence around
with the same words counts as close.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agent.claims import read_claims
from agent.evidence import Passage
from agent.trace import Claim, Evidenced, Merged, Reflected, Trace
from train.evaluation.words import NEGATIONS, content_words, sentences, words

Support = Literal["verbatim", "close", "not_found", "uncited"]

CLOSE: Final = 0.8
"""Share of a claim's content words that two neighbouring sentences must hold."""

_EXACT: Final = re.compile(r"\d[\d.,:/-]*|\b[A-ZÀ-ÖØ-Þ][\w'’-]+")
"""Numbers and names: they must all be found."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One claim with what was found for it."""

    text: str
    cites: tuple[int, ...]
    support: Support


def claims_of(trace: Trace) -> tuple[Claim, ...]:
    """The claims of the last evidence block; without one, those sentences of the last merge or reflection that cite."""
    for step in reversed(trace.steps):
        if isinstance(step, Evidenced):
            return step.claims
    for step in reversed(trace.steps):
        if isinstance(step, Merged | Reflected):
            lines = "\n".join(sentences(step.text))
            return tuple(claim for claim in read_claims(lines) if claim.cites)
    return ()


def check_claims(trace: Trace) -> tuple[Checked, ...]:
    """Each claim of a trace against the passages that it cites."""
    shown = {passage.number: passage for passage in trace.passages}
    return tuple(
        Checked(claim.text, claim.cites, check(claim.text, [shown[n] for n in claim.cites if n in shown]))
        for claim in claims_of(trace)
    )


def check(claim: str, passages: Sequence[Passage]) -> Support:
    """How far a claim stands in any one of the passages.

    `verbatim`: all its words, in their order. `close`: all its numbers and names, 80 % of its content words and its
    negation, within two neighbouring sentences (with the passage's title). `uncited`: there is no passage.
    """
    if not passages:
        return "uncited"
    said = " ".join(words(claim))
    if not said:
        return "not_found"
    if any(f" {said} " in f" {' '.join(words(part))} " for p in passages for part in (p.text, p.title)):
        return "verbatim"
    wanted = _Wanted.of(claim)
    close = any(wanted.stands_in(window, set(words(p.title))) for p in passages for window in windows(p.text))
    return "close" if close else "not_found"


def windows(text: str) -> Iterable[str]:
    """Each two neighbouring sentences."""
    parts = sentences(text)
    return (" ".join(parts[at : at + 2]) for at in range(max(len(parts) - 1, 1)))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a text must hold to be close to a claim."""

    content: frozenset[str]
    exact: frozenset[str]
    """Of numbers and names; a word that says little is none, also where it begins the sentence with a capital."""
    negated: bool

    @classmethod
    def of(cls, claim: str) -> "_Wanted":
        said, content = set(words(claim)), content_words(claim)
        little = {word for word in said - content if not word.isdigit()}
        exact = ({word for found in _EXACT.findall(claim) for word in words(found)} & said) - little
        return cls(frozenset(content), frozenset(exact), bool(said & NEGATIONS))

    def stands_in(self, text: str, title: set[str]) -> bool:
        there = set(words(text))
        with_title = there | title
        enough = len(self.content & with_title) >= CLOSE * len(self.content) > 0
        return enough and self.exact <= with_title and self.negated == bool(there & NEGATIONS)
