"""What a sentence says, as facts: a relation with its two ends, negated or not, over or not, and when."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from agent.checks.clauses import Clauses
from agent.checks.lexicon import SENSES
from agent.checks.mentions import Mention, Titles, mentions
from agent.checks.tokens import Token
from agent.checks.wordings import WordingMatch, find, is_noun, known_stems
from agent.checks.words import ARTICLES, BE

Role = Literal["in", "since", "until"]

_OF: Final = frozenset(("of", "for", "at"))
_POSSESSIVE: Final = frozenset(("its", "his", "her", "their"))
_DETERMINERS: Final = ("a", "an", "the", *_POSSESSIVE)
_NEAR: Final = 4
"""Tokens between a noun and the "'s", "as" or "is" that it belongs to."""


@dataclass(frozen=True, slots=True)
class End:
    """One end of a relation: who it may be. `open`: one who was named before (a pronoun, or no name at all)."""

    names: tuple[Mention, ...] = ()
    open: bool = False


@dataclass(frozen=True, slots=True)
class StatedFact:
    sense: str
    holder: End
    value: End
    negated: bool
    times: tuple[tuple[Role, Mention], ...]
    first: int
    last: int

    over: bool = False
    """Whether it "used to" be so."""

    @property
    def ended(self) -> bool:
        return self.over or any(role == "until" for role, _ in self.times)

    @property
    def symmetric(self) -> bool:
        return SENSES[self.sense].symmetric


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """A sentence that was read: its mentions, and its facts; those of one group are readings of the same words."""

    tokens: tuple[Token, ...]
    mentions: tuple[Mention, ...]
    groups: tuple[tuple[StatedFact, ...], ...]
    negated: bool
    """Whether anything in the sentence is negated."""
    used: frozenset[int]
    """Tokens of the wordings."""
    clauses: Clauses

    @property
    def subject(self) -> Mention | None:
        """Whom the sentence is about, if it begins with a name."""
        return self.clauses.opening()


def read(found: Sequence[Token], *, titles: Titles = ()) -> SentenceReading:
    """Read the tokens of one sentence; `titles` are names that are known."""
    named = mentions(found, titles=titles, openers=known_stems())
    inside = [False] * len(found)
    for mention in named:
        for place in range(mention.first, mention.last + 1):
            inside[place] = True
    matches = find(found, inside)
    clauses = Clauses(found, named, [group[0].first for group in matches])
    groups: list[tuple[StatedFact, ...]] = []
    used: set[int] = set()
    for group in matches:
        if facts := tuple(fact for match in group if (fact := _fact(clauses, match))):
            negated = any(fact.negated for fact in facts)
            groups.append(tuple(replace(fact, negated=negated) for fact in facts))
            used |= {place for fact in facts for place in range(fact.first, fact.last + 1) if not inside[place]}
    return SentenceReading(
        tuple(found),
        tuple(named),
        tuple(groups),
        clauses.negated(0, len(found) - 1),
        frozenset(used),
        clauses,
    )


def _fact(clauses: Clauses, match: WordingMatch) -> StatedFact | None:
    ends = _noun(clauses, match) if match.wording.noun else _verb(clauses, match)
    if ends is None:
        return None
    holder, value = ends
    names = (*holder.names, *value.names)
    last = max((mention.last for mention in names if mention.first > match.last), default=match.last)
    first = clauses.begin(match.first)
    taken = {id(mention) for mention in value.names}
    times = tuple(time for time in clauses.times(match.first) if id(time[1]) not in taken)
    over = clauses.text(match.first - 1) == "to" and clauses.text(match.first - 2) == "used"
    return StatedFact(
        match.wording.sense, holder, value, clauses.negated(first, last), times, match.first, match.last, over
    )


# Verbs and other wordings with a place for each end


def _verb(clauses: Clauses, match: WordingMatch) -> tuple[End, End] | None:
    wording = match.wording
    if wording.lead == ("V",) and wording.tail == "H" and clauses.passive(match.first, match.last):
        return None
    if wording.weight == 1 and is_noun(clauses.text(match.first)) and clauses.before(match.first, _DETERMINERS, 2):
        return None  # "its new head" is no verb
    ends: dict[str, End] = {}
    right = clauses.right(match.last + 1) if wording.tail else ()
    if wording.inner and match.inner:
        ends[wording.inner] = End(tuple(m for m in clauses.mentions if match.inner[0] <= m.first <= match.inner[1]))
    if wording.tail == "H":
        right = tuple(mention for mention in right if mention.kind == "name")
    if wording.tail:
        ends[wording.tail] = End(right, open=not right and wording.tail == "H")
    for slot in wording.lead:
        ends[slot] = _left(clauses, match, right)
    value, holder = ends.get("V", End()), ends.get("H")
    if not value.names and not (value.open and holder and holder.names):
        return None
    if holder is None:
        others = tuple(m for m in clauses.names if m not in value.names and m.last < match.first)
        holder = End(others, open=True)
    return holder, value


def _left(clauses: Clauses, match: WordingMatch, right: tuple[Mention, ...]) -> End:
    """The end to the left of the verb: its subject; where none is named there, the main clause's."""
    subject = clauses.subject(match.first)
    if subject.names or subject.pronoun:
        return End(subject.names, open=subject.open)
    return End(tuple(m for m in clauses.names if m.first > match.last and m not in right), open=True)


# Nouns: "the mentor of H is V" and its many turns


def _noun(clauses: Clauses, match: WordingMatch) -> tuple[End, End] | None:
    found, first, last = clauses.tokens, match.first, match.last
    after = found[last + 1].text if last + 1 < len(found) else ""
    if after in _OF and (ends := _noun_of(clauses, match)):
        return ends
    if (owner := _owner(clauses, first)) is not None:
        value = _value_right(clauses, last + 1) or clauses.left(owner.first)
        return (End((owner,)), End(value)) if value else None
    if clauses.before(first, ("as",), _NEAR):
        value = clauses.left(first)
        holders = tuple(m for m in clauses.names if value and m.last < value[0].first)
        return (End(holders, open=True), End(value)) if value else None
    left = tuple(m for m in clauses.names if m.last < first)
    if after == "," and clauses.text(first - 1) in _POSSESSIVE:  # "from its capital, V"
        return End(left, open=True), End(clauses.right(last + 2))
    if value := _value_right(clauses, last + 1):
        return End(tuple(m for m in left if m not in value), open=True), End(value)
    if clauses.before(first, (*BE, ","), _NEAR):
        value = clauses.left(first)
        subject = End(value, open=not value)
        return (End(tuple(m for m in left if m not in value), open=True), subject) if value else None
    return None


def _noun_of(clauses: Clauses, match: WordingMatch) -> tuple[End, End] | None:
    """Such as "the mentor of H is V", "V is the mentor of H", "V, mentor of H", "named V as head of H"."""
    right = clauses.right(match.last + 2)
    holders = tuple(m for m in right if m.kind == "name")
    if right and not holders:  # "a population of 5.6 million"
        left = tuple(m for m in clauses.names if m.last < match.first)
        return End(left, open=True), End(right)
    end = max((m.last for m in holders), default=clauses.next_be(match.last + 2) - 1)
    value = _value_right(clauses, end + 1, adjacent=False) or clauses.left(match.first)
    if not value:
        return None
    return End(holders, open=not holders), End(value)


def _owner(clauses: Clauses, first: int) -> Mention | None:
    """H in "H's first mentor"."""
    for place in range(first - 1, max(first - _NEAR, 0) - 1, -1):
        token = clauses.tokens[place]
        if token.text == "'s":
            return next((m for m in clauses.names if m.last == place - 1), None)
        if token.mark or clauses.inside(place):
            return None
    return None


def _value_right(clauses: Clauses, at: int, *, adjacent: bool = True) -> tuple[Mention, ...]:
    """V in "… is V", "…: V", "… has been in V", "… in V", and, right beside the noun, "mayor V"."""
    found = clauses.tokens
    place = clauses.past_brackets(at)
    while place < len(found) and found[place].text in ARTICLES:
        place += 1
    if place >= len(found):
        return ()
    if clauses.inside(place) and adjacent:
        return clauses.right(place)
    linked = False
    while place < len(found) and not clauses.inside(place) and clauses.links(place):
        if found[place].text in ("and", "or") and not linked:  # "its capital and largest city is V"
            place = clauses.next_be(place)
        linked = linked or found[place].text in (*BE, ":", "in", "on", "at", "include", "includes")
        place += 1
    return clauses.right(place) if linked else ()
