"""Multiple choice: which options an answer names, by letter or in words."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from train.evaluation.normalisations import unicode

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_LEADS: Final = re.compile(
    r"(?i)^\s*(the\s+)?(correct\s+|right\s+|best\s+|final\s+)?(answer|option|choice)s?(\s+(is|are))?\s*:?\s*"
    r"(option\s+)?"
)
_MARK: Final = r"[(\[]?\s*([A-Z])\s*[)\].:]?"
_ALONE: Final = re.compile(rf"(?i)^\s*{_MARK}(\s*(?:,|;|/|and|&)\s*{_MARK})*\s*\.?\s*$")
_OPENING: Final = re.compile(r"^\s*(?:\(([A-Z])\)|\[([A-Z])\]|([A-Z])\s*[).:])\s+\S")
_LETTER: Final = re.compile(r"(?i)\b([A-Z])\b")


def chosen(answer: str, options: Sequence[str]) -> frozenset[int]:
    """Places of the options that an answer names; none where that is not clear.

    In this order: the answer is an option word for word; it is a letter or several ("B", "(b)", "Option B", "A and
    C"); one option is in it as whole words (the longer one where one is part of another); it begins with a letter
    and a mark ("B) the second"); several options are in it.
    """
    plain = [unicode(option) for option in options]
    said, rest = unicode(answer), _LEADS.sub("", answer, count=1)
    for whole in (said, unicode(rest)):
        if whole and whole in plain:
            return frozenset({plain.index(whole)})
    if _ALONE.match(rest):
        places = {LETTERS.index(letter.upper()) for letter in _LETTER.findall(rest)}
        return frozenset(places if max(places) < len(options) else ())
    named = _named(said, plain)
    opening = _OPENING.match(rest)
    if opening and len(named) != 1:
        place = LETTERS.index(next(filter(None, opening.groups())))
        return frozenset({place}) if place < len(options) else named
    return named


def _named(said: str, plain: Sequence[str]) -> frozenset[int]:
    left = f" {said} "
    found: set[int] = set()
    for place in sorted(range(len(plain)), key=lambda place: -len(plain[place])):
        if plain[place] and f" {plain[place]} " in left:
            found.add(place)
            left = left.replace(f" {plain[place]} ", " | ")
    return frozenset(found)


def right_options(answers: Sequence[str], options: Sequence[str]) -> frozenset[int]:
    """Places of the options that the gold answers are, in words; or by letter where none is."""
    gold = {unicode(answer) for answer in answers}
    places = frozenset(place for place, option in enumerate(options) if unicode(option) in gold)
    if places or not options:
        return places
    return frozenset(place for place in range(len(options)) if LETTERS[place] in answers)


def set_f1(said: frozenset[int], gold: frozenset[int]) -> float:
    """F1 between two sets of options."""
    return 2 * len(said & gold) / (len(said) + len(gold)) if said & gold else 0.0


class SetScores(NamedTuple):
    """How an answer names a set of options, each from 0 to 1."""

    exact: float
    f1: float
    cover: float
    """Whether it names all that are right, and perhaps others."""


def several_right(answer: str, golds: Sequence[str], options: Sequence[str]) -> SetScores | None:
    """The scores where several options are right and each must be named; None where one gold answer is enough."""
    gold = right_options(golds, options)
    if len({unicode(options[place]) for place in gold}) < 2:
        return None
    named = chosen(answer, options)
    return SetScores(float(named == gold), set_f1(named, gold), float(gold <= named))


def in_words(answer: str, options: Sequence[str]) -> str:
    """The words of the option where an answer is nothing but a letter, so that "(b)" and "Trieste" score the same."""
    if not options or not _ALONE.match(_LEADS.sub("", answer, count=1)):
        return answer
    places = chosen(answer, options)
    return options[next(iter(places))] if len(places) == 1 else answer
