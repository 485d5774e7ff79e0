"""Questions about a universe, each with its gold answers, its gold passages and the plan that finds them."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from agent.world.difficulty import Difficulty
from agent.world.records import Document, Lookup, Question, QuestionType
from agent.world.relations import LISTINGS, RELATIONS
from train.world.facts import Ground
from train.world.grammar import capital
from train.world.population import WorldEntity
from train.world.special_questions import SpecialQuestions
from train.world.universe import Universe

_MOST_KNOWN = 200
"""Well-known questions of one world: the closed set has not many more."""
_SHARES: dict[QuestionType, float] = {
    "chain1": 0.13,
    "chain2": 0.16,
    "chain3": 0.14,
    "chain4": 0.08,
    "comparison": 0.12,
    "intersection": 0.09,
    "choice": 0.10,
    "count": 0.06,
    "time": 0.06,
    "followup": 0.06,
}
"""Of the questions that are neither well known nor unanswerable."""


def mix_of(difficulty: Difficulty) -> dict[QuestionType, float]:
    """The share of every type of question; they add up to 1."""
    too_long = {f"chain{hops}" for hops in range(difficulty.hops + 1, 5)}
    shares: dict[QuestionType, float] = {kind: share for kind, share in _SHARES.items() if kind not in too_long}
    special = min(1.0, difficulty.unanswerable + difficulty.well_known)
    scale = (1 - special) / sum(shares.values())
    mix: dict[QuestionType, float] = {kind: share * scale for kind, share in shares.items()}
    mix["unanswerable"] = special - min(special, difficulty.well_known)
    mix["known"] = min(special, difficulty.well_known)
    return mix


def counts_of(total: int, mix: Mapping[QuestionType, float]) -> dict[QuestionType, int]:
    """How many questions of each type; what rounding and the closed set leave over goes to the first."""
    counts: dict[QuestionType, int] = {kind: int(total * share) for kind, share in mix.items()}
    if "known" in counts:
        counts["known"] = min(counts["known"], _MOST_KNOWN)
    counts["chain1"] = counts.get("chain1", 0) + total - sum(counts.values())
    return counts


YEARS: dict[str, tuple[str, tuple[str, ...]]] = {
    "person": ("birth_year", ("Who was born {w}, {a} or {b}?", "Of {a} and {b}, who was born {w}?")),
    "city": ("city_founded", ("Which city was founded {w}, {a} or {b}?", "Of {a} and {b}, which was founded {w}?")),
    "org": ("org_founded", ("Which company was founded {w}, {a} or {b}?", "Of {a} and {b}, which was founded {w}?")),
    "school": ("school_founded", ("Which university was founded {w}, {a} or {b}?",)),
    "film": ("film_released", ("Which film was released {w}, {a} or {b}?", "Of {a} and {b}, which was released {w}?")),
    "novel": (
        "novel_published",
        ("Which novel was published {w}, {a} or {b}?", "Of {a} and {b}, which was published {w}?"),
    ),
}
"""Kind → the year by which two are compared, and the wordings of the question."""
CROSSED = (
    ("natives", "members", ("Which person {a} and {b}?", "Who {a} and {b}?")),
    ("natives", "alumni", ("Which person {a} and {b}?", "Who {a} and also {b}?")),
    ("films_by", "films_set", ("Which film {a} and {b}?", "What film {a} and {b}?")),
)


class QuestionWriter:
    """Draws questions from a universe and its documents."""

    def __init__(
        self, universe: Universe, documents: Sequence[Document], rng: random.Random, difficulty: Difficulty
    ) -> None:
        self._ground = Ground(universe, documents, rng, difficulty)
        self._special = SpecialQuestions(self._ground, documents)
        self._rng, self._universe, self._difficulty = rng, universe, difficulty

    def draw(self, kind: QuestionType, key: str) -> Question | None:
        """Try once; None where the draw did not give a sound question."""
        make: dict[QuestionType, Callable[[], Question | None]] = {
            "chain1": lambda: self._chain(1),
            "chain2": lambda: self._chain(2),
            "chain3": lambda: self._chain(3),
            "chain4": lambda: self._chain(4),
            "comparison": self._comparison,
            "intersection": self._intersection,
            "choice": self._choice,
            "count": self._special.count,
            "time": self._special.time,
            "followup": self._special.followup,
            "known": self._special.known,
            "unanswerable": self._special.unanswerable,
        }
        question = make[kind]()
        if question is None:
            return None
        found = [lookup for lookups in question.plan for lookup in lookups if lookup.gold]
        supporting = tuple(dict.fromkeys(key for lookup in found for key in (lookup.gold, *lookup.also)))
        web_only = {self._ground.source(lookup) for lookup in found} <= {"web"}
        return question.model_copy(update={"id": key, "type": kind, "supporting": supporting, "web_only": web_only})

    def _chain(self, hops: int) -> Question | None:
        path = self._ground.path(hops)
        if path is None:
            return None
        subject = self._ground.subject_of(path[:-1]) if hops > 1 else self._universe.label(path[0].subject)
        return Question(
            id="",
            type="chain1",
            question=self._ground.ask(path[-1].relation, subject),
            answers=self._ground.answers(path[-1].object),
            supporting=(),
            hops=hops,
            plan=tuple((self._ground.lookup(fact),) for fact in path),
            reveals=hops > 1,
        )

    def _choice(self) -> Question | None:
        question = self._chain(min(self._difficulty.hops, self._rng.choice((1, 2, 2, 3))))
        if question is None:
            return None
        right, last = question.answers[0], question.plan[-1][0]
        kind = RELATIONS[last.relation].object
        alike = [fact.object for fact in self._ground.facts if RELATIONS[fact.relation].object == kind]
        if kind == "year":
            alike = [fact.object for fact in self._ground.facts if fact.relation == last.relation]
        others = {self._universe.name(value) for value in alike}
        wrong = sorted(others - {right} - {other for other in others if other in question.question})
        if len(wrong) < 3 or right in question.question:
            return None
        options = [right, *self._rng.sample(wrong, 3)]
        self._rng.shuffle(options)
        text = f"{question.question} Options: {', '.join(options)}."
        return question.model_copy(update={"question": text, "candidates": tuple(options)})

    def _comparison(self) -> Question | None:
        if self._rng.random() < 1 / 3:
            kind = self._rng.choice(list(YEARS))
            alike = self._universe.of_kind(kind)
            if len(alike) < 2:
                return None
            one, two = self._rng.sample(alike, 2)
            return self._compare(one, two, kind, (), (one.label, two.label))
        return self._compare_revealed()

    def _compare_revealed(self) -> Question | None:
        first, second = self._rng.sample(self._ground.facts, 2)
        kind = RELATIONS[first.relation].object
        if kind not in YEARS or RELATIONS[second.relation].object != kind:
            return None
        if first.subject == second.subject or first.object == second.object:
            return None
        named = tuple(
            self._ground.phrase(fact.relation, self._universe.label(fact.subject)) for fact in (first, second)
        )
        before = ((self._ground.lookup(first), self._ground.lookup(second)),)
        one, two = (self._universe.entities[fact.object] for fact in (first, second))
        return self._compare(one, two, kind, before, (named[0], named[1]))

    def _compare(
        self,
        one: WorldEntity,
        two: WorldEntity,
        kind: str,
        before: tuple[tuple[Lookup, ...], ...],
        named: tuple[str, str],
    ) -> Question | None:
        relation, asks = YEARS[kind]
        facts = [self._universe.facts.get((entity.id, relation)) for entity in (one, two)]
        known = [fact for fact in facts if fact is not None]
        if len(known) < 2 or one.name == two.name or known[0].object == known[1].object:
            return None
        wanted: Literal["earlier", "later"] = self._rng.choice(("earlier", "later"))
        text = self._rng.choice(asks).format(w="first" if wanted == "earlier" else "last", a=named[0], b=named[1])
        winner = one if (int(known[0].object) < int(known[1].object)) == (wanted == "earlier") else two
        return Question(
            id="",
            type="comparison",
            question=capital(text),
            answers=self._ground.answers(winner.id),
            supporting=(),
            hops=1 + len(before),
            plan=(*before, tuple(self._ground.lookup(fact) for fact in known)),
            asks=wanted,
            candidates=(one.label, two.label),
            reveals=bool(before),
        )

    def _intersection(self) -> Question | None:
        one, two, asks = self._rng.choice(CROSSED)
        lists = self._universe.lists
        first = self._rng.choice([holder for holder, name in lists if name == one])
        members = lists[first, one]
        seconds = [holder for (holder, name), held in lists.items() if name == two and set(held) & set(members)]
        if not seconds:
            return None
        second = self._rng.choice(seconds)
        both = [member for member in members if member in lists[second, two]]
        if len(both) != 1 or len(members) < 2 or len(lists[second, two]) < 2:
            return None
        pairs = [(first, one), (second, two)]
        self._rng.shuffle(pairs)
        clauses = [self._rng.choice(LISTINGS[name].clause).format(s=self._universe.label(held)) for held, name in pairs]
        return Question(
            id="",
            type="intersection",
            question=self._rng.choice(asks).format(a=clauses[0], b=clauses[1]),
            answers=self._ground.answers(both[0]),
            supporting=(),
            hops=1,
            plan=(tuple(self._ground.listed(holder, name) for holder, name in pairs),),
            reveals=True,
        )
