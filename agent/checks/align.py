"""Where a page says most of a claim, and what of the claim is not there: names, numbers and words, and how they stand.

It knows no relation. What it finds is weighed in two ways only: all of it stands there and as in the claim, or all but
one thing does, and something else is in that thing's place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rapidfuzz.fuzz import ratio

from agent.checks.alike import LIGHT_WORD, WORD, alike, has, synonyms, weight
from agent.checks.facts import SentenceReading
from agent.checks.mentions import Mention, same
from agent.checks.page import PageLine, ReadPage
from agent.checks.tokens import Token
from agent.checks.words import ARTICLES, BE, DENIALS, FUNCTION

_SLACK: Final = 6
"""Tokens by which two things may stand farther apart in a page than in the claim."""
_HAVE: Final = frozenset(("has", "have", "had"))
_TYPO: Final = 75.0
"""Percent of letters that two spellings of a name share."""
_BE: Final = frozenset("is are was were".split())
_NAME: Final = 3.0
_CONTEXT: Final = 2.0
"""What a line gains by a name or number, and by a name that was named before it."""


@dataclass(frozen=True, slots=True)
class Item:
    """A name, number, date or word of a claim: its place there, and its places in the line."""

    place: float
    there: tuple[float, ...]
    what: Mention | Token


@dataclass(frozen=True, slots=True)
class Aligned:
    """The line that has most of a claim, and what of the claim it has not."""

    page: int
    line: int
    lacking: tuple[Mention, ...]
    """Names, dates and numbers that neither the line nor what it is about has."""
    replaced: bool
    """Whether another one of its kind is in the place of what is lacking."""
    missed: float
    """Weight of the words that the line lacks."""
    share: float
    """Of the weight of the claim's words, what the line has."""
    verbless: bool
    """Whether the line lacks a verb of the claim."""
    apart: bool
    """Whether a name or number stands far from what it stands beside in the claim, or in another part of the line."""
    turned: bool
    """Whether who does it to whom is turned around."""
    known: bool
    """Whether the claim has relations of the lexicon."""
    read: bool
    """Whether the line has one of them, too: then what the two say of it was compared already."""
    negated: bool
    """Whether one of the two negates what the other does not."""

    @property
    def says(self) -> bool:
        if self.read or self.share < 0.5:
            return False
        whole = self.missed <= (0.0 if self.known else LIGHT_WORD)
        return whole and not (self.lacking or self.verbless or self.apart or self.negated or self.turned)

    @property
    def denies(self) -> bool:
        """Whether the line says something else in the claim's place."""
        if self.missed > LIGHT_WORD or self.verbless or self.apart or self.turned:
            return False
        if self.share <= 0 and any(mention.kind == "name" for mention in self.lacking):
            return False  # another name says something else only of what the line speaks of, too
        return self.negated != (len(self.lacking) == 1 and self.replaced) and len(self.lacking) < 2


def align(claim: SentenceReading, pages: Sequence[ReadPage]) -> Aligned | None:
    """The line of the pages that has most of a claim."""
    wanted = content(claim)
    if not wanted and not claim.mentions:
        return None
    gains = (
        (_gain(claim, wanted, page, line), -number, -at)
        for number, page in enumerate(pages)
        for at, line in enumerate(page.lines)
        if line.start >= 0
    )
    gain, number, at = max(gains, default=(0.0, 0, 0))
    return _aligned(claim, wanted, pages, -number, -at) if gain > 0 else None


def content(claim: SentenceReading) -> list[tuple[int, Token]]:
    """The words that carry a meaning and belong to no name, with their places."""
    named = {place for m in claim.mentions if not m.weak for place in range(m.first, m.last + 1)}
    return [
        (place, token)
        for place, token in enumerate(claim.tokens)
        if place not in named and not token.mark and token.text not in FUNCTION and not claim.clauses.is_negation(place)
    ]


def _is_whole_predicate(claim: SentenceReading, place: int) -> bool:
    """Whether a word is all that a claim says of its subject: "The ferry is late"."""
    after = claim.tokens[place + 1 :]
    return place > 0 and claim.tokens[place - 1].text in _BE and all(token.mark for token in after)


def _same(page: ReadPage, claimed: Mention, stated: Mention) -> bool:
    return page.knows(claimed, stated) if claimed.kind == stated.kind == "name" else same(claimed, stated)


def _places(mention: Mention, line: PageLine, page: ReadPage) -> tuple[float, ...]:
    """Where a line has what a claim names: as a name, date or number, or all its words near each other."""
    found = tuple((m.first + m.last) / 2 for m in line.reading.mentions if _same(page, mention, m))
    if found:
        return found
    if mention.kind != "name":
        year = mention.date[0] if mention.kind == "date" and not mention.date[1] else mention.value
        return tuple(
            float(m.first)
            for m in line.reading.mentions
            if m.kind != mention.kind and year and year in (m.value, m.date[0] * (not m.date[1]))
        )
    words = {word for word in mention.words if word not in FUNCTION}
    at = [place for place, token in enumerate(line.reading.tokens) if token.text in words]
    whole = words and {line.reading.tokens[place].text for place in at} == words
    return (sum(at) / len(at),) if whole and at[-1] - at[0] < len(mention.words) + _SLACK else ()


# One line


def _gain(claim: SentenceReading, wanted: Sequence[tuple[int, Token]], page: ReadPage, line: PageLine) -> float:
    gain = sum(weight(token) for _, token in wanted if has(token, line.stems))
    for mention in claim.mentions:
        if not mention.weak:
            here = _places(mention, line, page)
            gain += _NAME if here else _CONTEXT if _before(mention, line, page) else 0.0
    return gain


def _before(mention: Mention, line: PageLine, page: ReadPage) -> bool:
    return mention.kind == "name" and page.names_it(mention, line.context)


def _aligned(
    claim: SentenceReading, wanted: Sequence[tuple[int, Token]], pages: Sequence[ReadPage], number: int, at: int
) -> Aligned:
    page, line = pages[number], pages[number].lines[at]
    firm = [mention for mention in claim.mentions if not mention.weak]
    items = [Item((m.first + m.last) / 2, _places(m, line, page), m) for m in firm]
    title = frozenset(stem for other in page.lines if other.start < 0 for stem in other.stems)
    missing = 0.0
    verbless = False
    for place, token in wanted:
        strict = place in claim.used
        here = tuple(
            float(k)
            for k, t in enumerate(line.reading.tokens)
            if not t.mark and (synonyms(token.stem, t.stem) if strict else alike(token.stem, t.stem))
        )
        items.append(Item(float(place), here, token))
        if not here and not any(synonyms(token.stem, other) for other in title):
            missing += WORD if _is_whole_predicate(claim, place) else weight(token)
            verbless = verbless or (claim.clauses.verbish(place) and weight(token) == WORD)
    items.sort(key=lambda item: item.place)
    lacking = tuple(
        item.what
        for item in items
        if isinstance(item.what, Mention) and not item.there and not _before(item.what, line, page)
    )
    whole = sum(weight(token) for _, token in wanted)
    return Aligned(
        number, at, lacking,
        replaced=len(lacking) == 1 and _replaced(lacking[0], items, firm, line, page),
        missed=missing, share=1 - missing / whole if whole else 1.0, verbless=verbless,
        apart=_apart(items, firm, line) or _mixed_up(items, claim, line, page),
        turned=_turned(items, claim, line, page) or not _owns(claim, line.reading),
        known=bool(claim.groups), read=not _senses_in(claim).isdisjoint(_senses_in(line.reading)),
        negated=_negated_there(items, line) != claim.negated,
    )  # fmt: skip


def _beside(items: Sequence[Item], at: int) -> Iterator[Item]:
    """What stands right before and right after an item, of what the line has."""
    yield from ([item for item in items[:at] if item.there][-1:])
    yield from ([item for item in items[at + 1 :] if item.there][:1])


def _apart(items: Sequence[Item], firm: Sequence[Mention], line: PageLine) -> bool:
    """Whether a name or number is far from both things that it stands between in the claim."""
    dates = sum(m.kind == "date" for m in line.reading.mentions)
    for at, item in enumerate(items):
        if isinstance(item.what, Mention) and item.there and item.what is not firm[0]:
            if item.what.kind == "date" and dates == 1:  # "In 2006, …" may stand anywhere
                continue
            beside = list(_beside(items, at))
            if beside and all(_distance(item, other) > abs(other.place - item.place) + _SLACK for other in beside):
                return True
    return False


def _mixed_up(items: Sequence[Item], claim: SentenceReading, line: PageLine, page: ReadPage) -> bool:
    """Whether a number or date is given to another name or date: "A has 5 and B has 7" does not say that A has 7."""
    firm = [(item, item.what) for item in items if item.there and isinstance(item.what, Mention)]
    weak = [
        (item, Mention("name", 0, 0, (item.what.text,)))
        for item in items
        if item.there and isinstance(item.what, Token) and item.what.capital
    ]
    for item, value in firm:
        part = claim.clauses.part(int(item.place))
        others = [one for one in firm if one[1].kind != value.kind] or weak
        ends = [one for one in others if int(one[0].place) in part]
        if value.kind != "name" and ends:
            end, what = min(ends, key=lambda one: abs(one[0].place - item.place))
            if all(
                _is_elsewhere(value, int(at), what, int(other), line, page) for at in item.there for other in end.there
            ):
                return True
    return False


def _is_elsewhere(value: Mention, at: int, end: Mention, end_at: int, line: PageLine, page: ReadPage) -> bool:
    """Whether two are in two parts of a line, and each part has, in the same order, another one of what it lacks."""
    clauses = line.reading.clauses
    of_value, of_end = clauses.part(at), clauses.part(end_at)
    if of_value == of_end:
        return False
    behind = {
        m.first > end_at for m in clauses.mentions if m.kind == value.kind and m.first in of_end and not same(value, m)
    }
    for other in clauses.mentions:
        if other.kind == end.kind and other.first in of_value and not _same(page, end, other):
            # In "A joined B in 5 and left C in 7" the subject is A in both parts.
            led = other.first > at or not any(clauses.verbish(k) for k in range(of_value.start, other.first))
            if led and (other.first < at) in behind:
                return True
    return False


def _distance(one: Item, other: Item) -> float:
    return min(abs(x - y) for x in one.there for y in other.there)


def _replaced(lacking: Mention, items: Sequence[Item], firm: Sequence[Mention], line: PageLine, page: ReadPage) -> bool:
    """Whether another name, date or number stands beside what the lacking one stands beside in the claim."""
    at = next(k for k, item in enumerate(items) if item.what is lacking)
    if lacking.kind == "name" and (lacking is firm[0] or _resembles(lacking, line)):
        return False
    others = [
        (m.first + m.last) / 2
        for m in line.reading.mentions
        if m.kind == lacking.kind and not m.weak and not any(_same(page, claimed, m) for claimed in firm)
    ]
    return any(
        abs(there - other) <= abs(item.place - items[at].place) + 2
        for item in _beside(items, at)
        for there in item.there
        for other in others
    )


def _resembles(name: Mention, line: PageLine) -> bool:
    """Whether a line has a word much like one of a name: "Vasquez" is "Vazquez", "Puerto Rican" of "Puerto Rico"."""
    there = [token.text for token in line.reading.tokens if token.capital]
    words = [word for word in name.words if word not in FUNCTION]
    return any(ratio(word, other) >= _TYPO for word in words for other in there)


def _senses_in(reading: SentenceReading) -> set[str]:
    return {fact.sense for group in reading.groups for fact in group}


def _turned(items: Sequence[Item], claim: SentenceReading, line: PageLine, page: ReadPage) -> bool:
    """Whether another one does what the claim's verb says: the names around it exchanged, or another subject."""
    verb = next(
        (i for i in items if isinstance(i.what, Token) and claim.clauses.verbish(int(i.place)) and i.there), None
    )
    names = [item for item in items if isinstance(item.what, Mention) and item.what.kind == "name"]
    before = [item for item in names if verb and item.place < verb.place][-1:]
    after = [item for item in names if verb and item.place > verb.place][:1]
    if verb is None and _ends_exchanged(items, claim, line):
        return True
    if verb is None and len(names) == len(items) == 2:  # "A is by B": what little is said of them hangs on their order
        return bool(names[0].there and names[1].there) and min(names[0].there) > max(names[1].there)
    if verb is None or not before:
        return False
    said = claim.clauses.passive(int(verb.place), int(verb.place))
    return all(_exchanged(before[0], after, said, int(at), line, page) for at in verb.there)


def _ends_exchanged(items: Sequence[Item], claim: SentenceReading, line: PageLine) -> bool:
    """Whether the two ends of a comparison, or of a verb that is not known, are exchanged: "A beat B", "B beat A"."""
    there = [item for item in items if item.there]
    names = [i for i in there if (i.what.capital if isinstance(i.what, Token) else i.what.kind == "name")]
    for middle in there:
        compares = claim.clauses.text(int(middle.place) + 1) == "than"
        ends = there if compares and len(names) < 2 else names
        before = [item for item in ends if item.place < middle.place][-1:]
        after = [item for item in ends if item.place > middle.place][:1]
        if not (isinstance(middle.what, Token) and before and after):
            continue
        if (compares or _side_by_side(before[0], after[0], claim)) and all(
            max(after[0].there) < at < min(before[0].there) and not _is_passive_there(middle, int(at), claim, line)
            for at in middle.there
        ):
            return True
    return False


def _side_by_side(before: Item, after: Item, claim: SentenceReading) -> bool:
    """Whether no small word leads from one to the other: "A beat B", but not "A is 20 km from B"."""
    between = [k for k in range(int(before.place) + 1, int(after.place)) if not claim.clauses.inside(k)]
    return all(claim.tokens[k].text not in FUNCTION or claim.tokens[k].text in ARTICLES for k in between)


def _is_passive_there(word: Item, at: int, claim: SentenceReading, line: PageLine) -> bool:
    """Whether a word is passive in the line alone: "was shown on NAME"."""
    said, stated = claim.clauses, line.reading.clauses
    return stated.passive(at, at) or (stated.text(at - 1) in BE and said.text(int(word.place) - 1) not in BE)


def _exchanged(before: Item, after: Sequence[Item], said: bool, at: int, line: PageLine, page: ReadPage) -> bool:
    """The same about one place of the verb; `said`: whether the claim's verb is passive."""
    clauses = line.reading.clauses
    stated = clauses.passive(at, at)
    subject = clauses.subject(at)
    first = before.what if said == stated else after[0].what if after else None
    if isinstance(first, Mention) and subject.names and not subject.open:
        return not page.names_it(first, subject.names)
    if not after:
        return False
    left, right = (before, after[0]) if said == stated else (after[0], before)
    behind = [place for place in right.there if place > at]
    ahead = [place for place in left.there if place < at] or ([-1.0] if not left.there else [])
    return not (behind or not right.there) or not ahead


def _owns(claim: SentenceReading, stated: SentenceReading) -> bool:
    """Whether what the claim says one has is also had by one on the page."""
    said = [token.text for token in claim.tokens]
    owns = any(text in _HAVE and not claim.clauses.verbish(place + 1) for place, text in enumerate(said[:-1]))
    return not owns or any(token.text in _HAVE or token.text in ("with", "'s") for token in stated.tokens)


def _negated_there(items: Sequence[Item], line: PageLine) -> bool:
    """Whether a line negates or doubts what it has of a claim: shortly before it."""
    places = [place for item in items for place in item.there]
    for at, token in enumerate(line.reading.tokens):
        reach = 8 if token.text in DENIALS else 4 if line.reading.clauses.is_negation(at) else 0
        if reach and line.reading.clauses.negated(at, at) and any(0 < place - at <= reach for place in places):
            return True
    return False


def negates(stated: SentenceReading, wanted: Sequence[Token]) -> bool:
    """Whether a line negates what is claimed; "without" only negates what comes right after it."""
    for place, token in enumerate(stated.tokens):
        if token.text == "without":
            near = frozenset(other.stem for other in stated.tokens[place + 1 : place + 5])
            if any(has(word, near) for word in wanted):
                return True
        elif (stated.clauses.is_negation(place) or token.text in DENIALS) and stated.clauses.negated(place, place):
            return True
    return False
