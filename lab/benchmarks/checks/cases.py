"""Traces of the little world with claims whose truth is known: as the world words them, and corrupted on purpose."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agent.evidence import Passage
from agent.trace import Gathered, Trace
from agent.world.records import Document, Lookup, Question, Stated
from agent.world.relations import LISTINGS, RELATIONS
from agent.world.world import World
from lab.benchmarks.checks.wordings import capital, claim_wordings, negated, swapped

Corruption = Literal["entity", "number", "relation", "negation"]
CORRUPTIONS: Final[tuple[Corruption, ...]] = ("entity", "number", "relation", "negation")

_BESIDE: Final = 2
"""Passages beside the gold one that a look-up shows."""
_YEAR: Final = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})\b")


@dataclass(frozen=True)
class ClaimCase:
    """One claim, the numbers that it cites, and what was done to it; None: nothing, it is true."""

    text: str
    cites: tuple[int, ...]
    corruption: Corruption | None
    relation: str
    standard: bool = False
    """Whether it is worded as policies are taught to."""


@dataclass(frozen=True)
class CaseTrace:
    """A trace that has gathered passages, and what may be claimed of them."""

    trace: Trace
    cases: tuple[ClaimCase, ...]


class CaseWriter:
    """Makes the cases of one world. Each claim is made in three forms: standard, in other words, and corrupted."""

    def __init__(self, world: World, *, seed: int) -> None:
        self._world = world
        self._rng = random.Random(f"claims {world.name} {seed}")
        self._count = dict.fromkeys(CORRUPTIONS, 0)
        self._pools = _pools(world.documents)

    def write(self) -> Iterator[CaseTrace]:
        """One trace for each question that has something to find."""
        for question in self._world.questions:
            if made := self._trace(question):
                yield made

    def _trace(self, question: Question) -> CaseTrace | None:
        lookups = [k for ks in question.plan for k in ks if k.gold and k.values]
        if not lookups:
            return None
        shown: dict[str, Passage] = {}
        for lookup in lookups:
            near = self._world.find("all", lookup.query, limit=_BESIDE)
            gold = [_passage(self._world.document(key)) for key in (lookup.gold, *lookup.also)]
            shown |= {p.id: p for p in (*gold, *near) if p.id not in shown}
        passages = tuple(p.model_copy(update={"number": n}) for n, p in enumerate(shown.values(), start=1))
        numbers = {p.id: p.number for p in passages}
        trace = Trace(id=question.id, question=question.question, protocol="cairn", policy="cases")
        trace.passages.extend(passages)
        trace.steps.append(Gathered(round=1, passages=passages))
        cases = [case for lookup in lookups for case in self._cases(lookup, numbers)]
        return CaseTrace(trace, tuple(cases))

    def _cases(self, lookup: Lookup, numbers: Mapping[str, int]) -> Iterator[ClaimCase]:
        value = self._rng.choice(lookup.values)
        document = self._gold(lookup, value)
        cites = (numbers[document.id],)
        stated = next((s for s in document.states if _is(s, lookup, value)), None)
        wordings = list(claim_wordings(lookup, value, stated))
        if not wordings:
            return
        others = [text for text in wordings[1:] if not _stands(text, lookup.subject, document)] or wordings
        yield ClaimCase(wordings[0], cites, None, lookup.relation, standard=True)
        other = self._rng.choice(others)
        yield ClaimCase(other, cites, None, lookup.relation)
        base = self._rng.choice((wordings[0], other))
        made = self._corrupted(base, lookup, value, document)
        if made:
            yield ClaimCase(made[0], cites, made[1], lookup.relation)

    def _gold(self, lookup: Lookup, value: str) -> Document:
        """The document that states this value, of those that a listing needs."""
        documents = [self._world.document(key) for key in (lookup.gold, *lookup.also)]
        return next((d for d in documents if any(_is(s, lookup, value) for s in d.states)), documents[0])

    def _corrupted(self, claim: str, lookup: Lookup, value: str, document: Document) -> tuple[str, Corruption] | None:
        """The claim with one thing wrong: of the kinds that are possible, the one that is rarest so far."""
        for kind in sorted(CORRUPTIONS, key=lambda kind: self._count[kind]):
            text = self._corrupt(kind, claim, lookup, value, document)
            if text and text != claim:
                self._count[kind] += 1
                return text, kind
        return None

    def _corrupt(self, kind: Corruption, claim: str, lookup: Lookup, value: str, document: Document) -> str | None:
        match kind:
            case "entity":
                return self._entity(claim, lookup, value, document)
            case "number":
                return self._number(claim, document)
            case "relation":
                several = sum(value in s.values for s in document.states) > 1
                return None if lookup.when or several else swapped(lookup, value, self._rng)
            case "negation":
                return negated(claim, lookup.subject, self._rng)

    def _entity(self, claim: str, lookup: Lookup, value: str, document: Document) -> str | None:
        """Another entity of the same kind for the subject or the value; half the time one that the page names, too."""
        sides = [(lookup.subject, _kinds(lookup.relation)[0])]
        if not value.isdigit():
            sides.append((value, _kinds(lookup.relation)[1]))
        name, kind = self._rng.choice(sides)
        true = {label for s in document.states if s.relation == lookup.relation for label in (s.subject, *s.values)}
        others = [o for o in self._pools.get(kind, ()) if o not in true and _bare(o) not in map(_bare, true)]
        near = [o for o in others if _bare(o) in document.text or _bare(o) in document.title]
        pool = near if near and self._rng.random() < 0.5 else others
        if not pool or not _has(claim, name):
            return None
        other = self._rng.choice(pool)
        return capital(claim.replace(name, other).replace(capital(name), capital(other)))

    def _number(self, claim: str, document: Document) -> str | None:
        """Another year; half the time one that the page gives for something else."""
        years = _YEAR.findall(claim)
        if not years:
            return None
        year = self._rng.choice(years)
        others = sorted(set(_YEAR.findall(document.text)) - set(years))
        if others and self._rng.random() < 0.5:
            return claim.replace(year, self._rng.choice(others))
        return claim.replace(year, str(int(year) + self._rng.choice((-30, -11, -10, -2, -1, 1, 2, 9, 10, 20))))


def _passage(document: Document) -> Passage:
    return Passage(id=document.id, source=document.source, title=document.title, text=document.text, date=document.date)


def _is(stated: Stated, lookup: Lookup, value: str) -> bool:
    """Whether a document states what a look-up found."""
    if stated.subject != lookup.subject or stated.relation != lookup.relation or stated.doubtful:
        return False
    if lookup.when == "since":
        return stated.since == value
    return value in stated.values and not (lookup.when in ("in", "before") and not stated.until)


def _kinds(relation: str) -> tuple[str, str]:
    if relation in LISTINGS:
        return LISTINGS[relation].subject, LISTINGS[relation].member
    return RELATIONS[relation].subject, RELATIONS[relation].object


def _pools(documents: Sequence[Document]) -> dict[str, list[str]]:
    """Kind of entity → the labels of all there are."""
    pools: dict[str, dict[str, None]] = {}
    for document in documents:
        for stated in document.states:
            subject, value = _kinds(stated.relation)
            pools.setdefault(subject, {})[stated.subject] = None
            pools.setdefault(value, {}).update(dict.fromkeys(stated.values))
    return {kind: sorted(labels) for kind, labels in pools.items()}


def _bare(label: str) -> str:
    """A person's name without the profession."""
    return re.sub(r"^the [a-z]+ ", "", label)


def _has(claim: str, name: str) -> bool:
    return name in claim or capital(name) in claim


def _stands(claim: str, subject: str, document: Document) -> bool:
    """Whether the page says it in the same words."""
    rest = claim.removeprefix(capital(subject)).strip(" .")
    return rest in document.text
