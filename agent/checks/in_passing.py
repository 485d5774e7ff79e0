"""What is said in passing: life dates in brackets, and "a 1965 novel"."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agent.checks.facts import End, SentenceReading, StatedFact
from agent.checks.mentions import Mention
from agent.checks.tokens import Token
from agent.checks.words import ARTICLES, BE


def with_facts_in_passing(reading: SentenceReading) -> SentenceReading:
    """The reading with the facts that are said in passing."""
    groups = [*_life(reading), *_year_of_work(reading)]
    return replace(reading, groups=(*reading.groups, *groups)) if groups else reading


_DASHES: Final = frozenset(("–", "—", "-"))


def _closing(found: Sequence[Token], opening: int) -> int:
    return next((k for k in range(opening, len(found)) if found[k].text == ")"), len(found))


def _life(reading: SentenceReading) -> list[tuple[StatedFact, ...]]:
    """Read "Lina Orr (12 May 1944 – 3 June 2001)" or "(1944, Trieste – 2001, Rome)"."""
    found = reading.tokens
    dates = [m for m in reading.mentions if m.kind == "date"]
    openings = [k for k, token in enumerate(found) if token.text == "("]
    opening = next((k for k in openings if sum(k < m.first < _closing(found, k) for m in dates) == 2), None)
    if opening is None:
        return []
    closing = _closing(found, opening)
    who = [m for m in reading.mentions if m.kind == "name" and m.last < opening][-1:]
    dates = [m for m in dates if opening < m.first < closing]
    if not who:
        return []
    between = [token.text for token in found[dates[0].last + 1 : dates[1].first]]
    if {"from", "since", "and", "to"} & {token.text for token in found[opening:closing]} or (
        between and not _DASHES & set(between)
    ):
        return []
    holder = End((*who, *(m for m in reading.mentions if m.kind == "name" and m.last < opening)), open=True)
    dash = next((k for k in range(dates[0].last, dates[1].first) if found[k].text in _DASHES), dates[1].first)
    parts = [m for m in reading.mentions if opening < m.first < closing]
    born = tuple(m for m in parts if m.last < dash and (m is dates[0] or m.first > dates[0].last))
    died = tuple(m for m in parts if m.first >= dash)
    return [(_fact("birth", holder, born, opening),), (_fact("death", holder, died, opening),)]


def _year_of_work(reading: SentenceReading) -> list[tuple[StatedFact, ...]]:
    """Read "Aurora Falls is a 2025 film", "her 1965 novel Dune"."""
    found = reading.tokens
    for mention in reading.mentions:
        before = found[mention.first - 1].text if mention.first else ""
        if mention.kind == "date" and not mention.date[1] and (before in ARTICLES or before in ("her", "his", "'s")):
            be = any(found[k].text in BE for k in range(max(mention.first - 3, 0), mention.first))
            near = [m for m in reading.mentions if m.kind == "name" and (m.last < mention.first) is be]
            holder = End(tuple(near[:1]), open=True)
            return [tuple(_fact(sense, holder, (mention,), mention.first) for sense in ("released", "published"))]
    return []


def _fact(sense: str, holder: End, value: tuple[Mention, ...], at: int) -> StatedFact:
    return StatedFact(sense, holder, End(value), negated=False, times=(), first=at, last=at)
