"""Whether a page states a fact of a claim: the same relation between the same two ends, negated alike, at that time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from agent.checks.facts import End, SentenceReading, StatedFact
from agent.checks.lexicon import CONVERSE
from agent.checks.mentions import Mention, same
from agent.checks.page import PageLine, ReadPage
from agent.checks.patterns import stated_by

Support = tuple[int, int]
"""Place of a page among those cited, and of a line on it."""

Times = Sequence[tuple[str, Mention]]

_PRESENT = frozenset("is are has have now currently current today".split())
_PAST = frozenset("was were had until formerly former previously once".split())


def group_lines(group: Sequence[StatedFact], claim: SentenceReading, pages: Sequence[ReadPage]) -> list[Support] | None:
    """The lines that state one of several readings of the same words, each of its values."""
    for fact in group:
        lines: list[Support] = []
        for value in fact.value.names or (None,):
            support = next(tellers(fact, value, claim, pages), None) or drawn(fact, value, pages)
            if support is None:
                break
            lines.append(support)
        else:
            return lines
    return None


def drawn(fact: StatedFact, value: Mention | None, pages: Sequence[ReadPage]) -> Support | None:
    """The line that says a fact of its page's subject in a pattern."""
    if value is None or fact.negated or fact.times or fact.ended:
        return None
    found = (
        (place, at)
        for place, page in enumerate(pages)
        for who in fact.holder.names
        for at in stated_by(fact.sense, who, value, page)
        if not page.lines[at].reading.negated and not _belongs_to_another(fact.sense, who, value, page, at)
    )
    return next(found, None)


def _belongs_to_another(sense: str, who: Mention, value: Mention, page: ReadPage, at: int) -> bool:
    """Whether a line of two such facts gives the value to another holder: "A was born in 1940 and B in 1950"."""
    stated = [one for group in page.lines[at].reading.groups for one in group if one.sense == sense]
    own = [one for one in stated if page.names_it(who, one.holder.names)]
    having = [one for one in stated if any(same(value, m) or same(m, value) for m in one.value.names)]
    return bool(own and having) and not any(one in own for one in having)


def turned_around(fact: StatedFact, claim: SentenceReading, pages: Sequence[ReadPage]) -> bool:
    """Whether the pages state a fact with its two ends exchanged."""
    names = tuple(m for m in fact.value.names if m.kind == "name")
    if not names or not fact.holder.names or fact.symmetric or fact.negated:
        return False
    other = replace(fact, holder=End(names), value=End(fact.holder.names), times=())
    return any(next(tellers(other, who, claim, pages), None) or drawn(other, who, pages) for who in fact.holder.names)


def tellers(
    fact: StatedFact, value: Mention | None, claim: SentenceReading, pages: Sequence[ReadPage]
) -> Iterator[Support]:
    for place, page in enumerate(pages):
        for at, line in enumerate(page.lines):
            for stated in (stated for group in line.reading.groups for stated in group):
                alike = fact.sense in (stated.sense, CONVERSE.get(stated.sense))
                if alike and _states(stated, page, at, fact, value, claim):
                    yield place, at


def _states(
    stated: StatedFact, page: ReadPage, at: int, fact: StatedFact, value: Mention | None, claim: SentenceReading
) -> bool:
    """Whether a fact of a page is that of the claim, with this value."""
    if stated.negated != fact.negated:
        return False
    if stated.ended and not fact.ended and _is_present(claim):
        return False
    line = page.lines[at]
    if not _times_agree((*stated.times, *_dateline(stated, page, at)), fact, value, stated.value.names):
        return False
    ways = [(stated.holder, stated.value)] if stated.sense == fact.sense else []
    if stated.symmetric or not ways:
        ways.append((stated.value, stated.holder))
    if value is not None and len(fact.value.names) > 1 and _at_that_time(value, stated):
        value = None
    return any(_ends(holder, end, line, page, fact, value) for holder, end in ways)


def _ends(holder: End, end: End, line: PageLine, page: ReadPage, fact: StatedFact, value: Mention | None) -> bool:
    if value is not None and not _is_end(value, end, line, page):
        return False
    if value is not None and value.kind == "date":  # "X founded Y in 1950": of the founding, both are
        holder = End((*holder.names, *(m for m in end.names if m.kind == "name")), open=holder.open)
    wanted = fact.holder.names
    return not wanted or any(_is_end(who, holder, line, page) for who in wanted)


def _is_end(claimed: Mention, end: End, line: PageLine, page: ReadPage) -> bool:
    if page.names_it(claimed, end.names):
        return True
    return end.open and page.names_it(claimed, line.context)


def _at_that_time(value: Mention, stated: StatedFact) -> bool:
    """Whether a date that the claim gives with the rest, "married V in 1895", is in the fact's clause."""
    return value.kind == "date" and any(role == "in" and same(value, date) for role, date in stated.times)


def _is_present(claim: SentenceReading) -> bool:
    said = {token.text for token in claim.tokens}
    return bool(said & _PRESENT) and not said & _PAST


def _dateline(stated: StatedFact, page: ReadPage, at: int) -> list[tuple[str, Mention]]:
    """The date of a report, "Report of 9 April 2025.", that stands before its first sentence."""
    if stated.times or at != 1 or page.lines[at].start < 0 or page.lines[0].reading.groups:
        return []
    return [("in", m) for m in page.lines[0].reading.mentions if m.kind == "date"]


def _times_agree(stated: Times, fact: StatedFact, value: Mention | None, values: Sequence[Mention]) -> bool:
    """Whether the page gives every date that the claim gives, in the same role: since, until, in."""
    taken = {m for m in fact.value.names if m.kind == "date"}
    for role, date in fact.times:
        if date in taken or date is value:
            continue
        if not any(_same_time(role, date, r, d) for r, d in (*stated, *(("in", m) for m in values))):
            return False
    return True


def _same_time(role: str, date: Mention, other: str, there: Mention) -> bool:
    if there.kind != "date" or not all(w in (0, h) for w, h in zip(date.date, there.date, strict=True)):
        return False
    return role == other or "in" in (role, other)
