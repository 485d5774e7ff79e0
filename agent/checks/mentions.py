"""What a sentence speaks of: names, dates and numbers, each with its place; and when two of them are the same."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agent.checks.tokens import Token
from agent.checks.words import (
    ARTICLES,
    CONJUNCTIONS,
    FUNCTION,
    HONORIFICS,
    MONTHS,
    NAME_LINKS,
    NAME_TAILS,
    ORDINALS,
    PLACE_MARKS,
    SCALES,
    SCALES_SHORT,
    SHORT,
    TENS,
    UNITS,
)

Kind = Literal["name", "date", "number"]

_YEARS: Final = range(1000, 2101)
_RUN: Final = 20
"""Most tokens of a name."""
_LINKS: Final = 3
"""Most small words between two capitals of one name."""


@dataclass(frozen=True, slots=True)
class Mention:
    """Tokens `first` to `last` (both included) of a sentence, and what they stand for."""

    kind: Kind
    first: int
    last: int
    words: tuple[str, ...] = ()
    """Of a name: folded, without article. Of a number that is a version and ends with 0: itself."""
    date: tuple[int, int, int] = (0, 0, 0)
    """Year, month, day; 0 where it is not said."""
    value: float = 0.0
    weak: bool = False
    """A single capital at the beginning of a sentence: perhaps no name."""


_LONG: Final = {"us": ("united", "states"), "usa": ("united", "states"), "uk": ("united", "kingdom")}
_VERSION: Final = re.compile(r"\d+\.\d*[1-9]0+")
_DATE_GLUE: Final = frozenset((",", "of", "th", "st", "nd", "rd", "."))

Titles = Sequence[tuple[str, ...]]


def mentions(found: Sequence[Token], *, titles: Titles = (), openers: frozenset[str] = frozenset()) -> list[Mention]:
    """Names, dates and numbers in order.

    Args:
        found: the tokens of one sentence.
        titles: folded words of names that are known, also where they are not written with capitals.
        openers: stems of words that are no name where they begin a sentence.
    """
    kept: list[Mention] = []
    at = 0
    while at < len(found):
        mention = _title(found, at, titles) or _date(found, at) or _number(found, at) or _name(found, at, openers)
        if mention is None:
            at += 1
        else:
            kept.append(mention)
            at = mention.last + 1
    return kept


def same(claimed: Mention, stated: Mention) -> bool:
    """Whether what a claim names may be what a text names: a date may say less than the text, a name be shorter."""
    if claimed.kind == "name" and stated.kind == "name":
        return same_name(claimed.words, stated.words)
    if claimed.kind == "date" and stated.kind == "date":
        return all(want in (0, have) for want, have in zip(claimed.date, stated.date, strict=True))
    return claimed.kind == stated.kind == "number" and (claimed.value, claimed.words) == (stated.value, stated.words)


def same_name(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Lina Orr is Orr, L. Orr, Mrs. Orr and Lina B. Orr; Trenholm is not East Trenholm, nor York New York."""
    one, other = _bare(one), _bare(other)
    joined = "".join(one), "".join(other)
    if one == other or joined[0] == joined[1] or SHORT.get(joined[0], joined[0]) == SHORT.get(joined[1], joined[1]):
        return True
    short, long = sorted((one, other), key=len)
    if not short:
        return False
    if len(short) == len(long):
        return short[-1] == long[-1] and all(map(_initial, short[:-1], long[:-1]))
    if long[-len(short) :] == short:
        return not PLACE_MARKS & set(long[: -len(short)]) and not {"of", "de"} & set(long)
    return len(short) > 1 and short[-1] == long[-1] and _initial(short[0], long[0])


def _initial(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])


def _bare(words: tuple[str, ...]) -> tuple[str, ...]:
    while len(words) > 1 and (words[0] in HONORIFICS or words[0] in ARTICLES):
        words = words[1:]
    while len(words) > 1 and words[-1] in NAME_TAILS:
        words = words[:-1]
    return (*_LONG.get(words[0], words[:1]), *words[1:]) if words else words


def _date(found: Sequence[Token], at: int) -> Mention | None:
    """12 May 1944, May 12, 1944, May 1944, 12 May, 1944-05-12, 12.05.1944, 1944."""
    here = found[at]
    if here.number and here.text.count(".") == 2:
        day, month, year = (int(part) for part in here.text.split("."))
        return Mention("date", at, at, date=(year, month, day)) if year in _YEARS and 0 < month < 13 else None
    if _is(found, at, "year") and (iso := _iso(found, at)):
        return iso
    for shape in ("dmy", "mdy", "my", "dm", "md", "y", *(("m",) if at else ())):
        if match := _shaped(found, at, shape):
            return match
    return None


def _shaped(found: Sequence[Token], at: int, shape: str) -> Mention | None:
    parts = {"y": 0, "m": 0, "d": 0}
    first = last = at
    for part in shape:
        while at > first and at < len(found) and found[at].text in _DATE_GLUE:
            at += 1
        if not _is(found, at, {"y": "year", "m": "month", "d": "day"}[part]):
            return None
        parts[part] = MONTHS[found[at].text] if part == "m" else int(found[at].text)
        last, at = at, at + 1
    if shape == "y" and at < len(found) and found[at].text in ("s", "%"):
        return None
    return Mention("date", first, last, date=(parts["y"], parts["m"], parts["d"]))


def _is(found: Sequence[Token], at: int, part: str) -> bool:
    if at >= len(found):
        return False
    token = found[at]
    if part == "month":
        return token.text in MONTHS and token.capital
    if not token.text.isdecimal() or (at and found[at - 1].text in "$€£"):
        return False
    if part == "year":
        return len(token.text) == 4 and int(token.text) in _YEARS
    return len(token.text) < 3 and int(token.text) in range(1, 32)


def _iso(found: Sequence[Token], at: int) -> Mention | None:
    if at + 2 >= len(found):
        return None
    year, month, day = found[at : at + 3]
    if not (month.text.isdecimal() and day.text.isdecimal() and len(month.text) == len(day.text) == 2):
        return None
    if month.start - year.end != 1 or day.start - month.end != 1:
        return None
    return Mention("date", at, at + 2, date=(int(year.text), int(month.text), int(day.text)))


def _number(found: Sequence[Token], at: int) -> Mention | None:
    """Digits and number words: 1,234, 1.5 million, twenty-one, three hundred, third, 3rd."""
    value: float | None = None
    last = at
    for place in range(at, len(found)):
        token = found[place]
        if scale := SCALES.get(token.text) or _short_scale(found, at, place):
            if value is None:
                break
            value *= scale
        elif (small := _small(token)) is not None and (value is None or _adds(value, small, found[place - 1])):
            value = small if value is None else value + small
        else:
            break
        last = place
    if value is None or (last == at and found[at].text in ("one", "second")):
        return None
    # Python 3.10 is not Python 3.1, but 2.50 metres are 2.5 metres.
    versioned = at > 0 and (found[at - 1].capital or found[at - 1].text == "version")
    words = (found[at].text,) if versioned and _VERSION.fullmatch(found[at].text) else ()
    return Mention("number", at, last, words, value=value)


def _short_scale(found: Sequence[Token], at: int, place: int) -> int | None:
    """What a letter behind a number stands for; "m" is million in "$5 m" and "5m people", and otherwise metres."""
    token = found[place]
    if place == at or not found[place - 1].number:
        return None
    if token.text == "m" and not (at and found[at - 1].text in "$€£"):
        counted = found[place + 1].text if place + 1 < len(found) else ""
        if token.start > found[place - 1].end or not (counted == "people" or counted.endswith("s")):
            return None
    return SCALES_SHORT.get(token.text)


def _small(token: Token) -> float | None:
    if token.number:
        try:
            return float(token.text)
        except ValueError:
            return None
    return UNITS.get(token.text) or TENS.get(token.text) or ORDINALS.get(token.text)


def _adds(value: float, small: float, before: Token) -> bool:
    """Twenty one, two hundred five; but not "20 30"."""
    if before.number:
        return False
    return (before.text in TENS and small < 10) or (before.text in SCALES and value >= 100 > small)


def _title(found: Sequence[Token], at: int, titles: Titles) -> Mention | None:
    here = found[at].text
    for words in titles:
        if words[0] == here and (len(words) > 1 or found[at].capital):
            end, left = at, list(words)
            while left and end < len(found) and (found[end].mark or found[end].text == left[0]):
                if not found[end].mark:
                    left.pop(0)
                end += 1
            goes_on = end < len(found) and found[end].capital and found[end].text not in FUNCTION
            if not left and not goes_on:  # "Dune Messiah" is not Dune
                return Mention("name", at, end - 1, words=words)
    return None


def _name(found: Sequence[Token], at: int, openers: frozenset[str]) -> Mention | None:
    """Capitals one after the other, small links between them ("University of Trieste", "J. R. R. Tolkien")."""
    if not found[at].capital:
        return None
    places = list(_run(found, at))
    opening = at == 0 or found[at - 1].text in ('"', "“", ":", "—", "–", ".")
    while opening and places and _no_name(found[places[0]], openers):
        places = places[1:]
        while places and not found[places[0]].capital:
            places = places[1:]
        opening = False if places and places[0] - at > 1 else opening
    while places and found[places[0]].text in FUNCTION and len(places) > 1 and found[places[0]].text in ARTICLES:
        places = places[1:]
    alone = len(places) == 1 and found[places[0]].text in FUNCTION and not found[places[0]].caps
    if not places or alone:
        return None
    words = tuple(found[place].text for place in places if not found[place].mark)
    weak = opening and len(places) == 1
    return Mention("name", places[0], places[-1], words=words, weak=weak)


def _no_name(token: Token, openers: frozenset[str]) -> bool:
    known = token.text in FUNCTION or token.text in CONJUNCTIONS or token.stem in openers
    return known and token.text not in PLACE_MARKS - ARTICLES


def _run(found: Sequence[Token], at: int) -> Iterator[int]:
    """The places of one run of capitals."""
    waiting: list[int] = []
    for place in range(at, min(at + _RUN, len(found))):
        token = found[place]
        if token.capital and token.text not in MONTHS:
            yield from waiting
            yield place
            waiting = []
        elif (token.text == "." and place and len(found[place - 1].text) == 1 and found[place - 1].capital) or (
            token.text in NAME_LINKS and token.text != "and" and len(waiting) < _LINKS and not token.mark
        ):
            waiting.append(place)
        else:
            return
