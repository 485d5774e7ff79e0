"""Questions about a universe, each with its gold answers, its gold passages and the plan that finds them."""

import random
from collections.abc import Callable, Sequence
from typing import Literal

from agent.world.records import Document, Lookup, Question, QuestionType
from agent.world.v1.relations import LISTINGS, RELATIONS
from agent.world.v1.universe import Entity, Fact, Universe

MIX: dict[QuestionType, float] = {
    "chain1": 0.17,
    "chain2": 0.22,
    "chain3": 0.18,
    "comparison": 0.15,
    "intersection": 0.13,
    "choice": 0.15,
}


class QuestionWriter:
    """Draws questions from a universe and its documents."""

    def __init__(self, universe: Universe, documents: Sequence[Document], rng: random.Random) -> None:
        self._universe = universe
        self._rng = rng
        self._gold: dict[tuple[str, str], Document] = {}
        for document in documents:  # later documents are more exact: a triple or a report beats a page
            for stated in document.states:
                known = self._gold.get((stated.subject, stated.relation))
                if not stated.outdated and (known is None or document.source in self._wanted(stated.relation)):
                    self._gold[stated.subject, stated.relation] = document
        self._facts = list(universe.facts.values())
        self._by_subject: dict[str, list[Fact]] = {}
        for fact in self._facts:
            self._by_subject.setdefault(fact.subject, []).append(fact)

    @staticmethod
    def _wanted(relation: str) -> tuple[str, ...]:
        known = RELATIONS.get(relation)
        return known.sources if known else (LISTINGS[relation].source,)

    def draw(self, kind: QuestionType, key: str) -> Question | None:
        """Try once; None where the draw did not give a sound question."""
        make: dict[QuestionType, Callable[[], Question | None]] = {
            "chain1": lambda: self._chain(1),
            "chain2": lambda: self._chain(2),
            "chain3": lambda: self._chain(3),
            "comparison": self._comparison,
            "intersection": self._intersection,
            "choice": self._choice,
        }
        question = make[kind]()
        if question is None:
            return None
        lookups = [lookup for lookups in question.plan for lookup in lookups]
        sources = {source for lookup in lookups for source in self._sources_of_gold(lookup)}
        supporting = tuple(dict.fromkeys(lookup.gold for lookup in lookups))
        return question.model_copy(
            update={"id": key, "type": kind, "supporting": supporting, "web_only": sources <= {"web"}}
        )

    def _sources_of_gold(self, lookup: Lookup) -> set[str]:
        return {self._gold[lookup.subject, lookup.relation].source}

    def _lookup(self, fact: Fact) -> Lookup:
        subject = self._universe.label(fact.subject)
        values = (self._universe.label(fact.object),)
        return Lookup(
            subject=subject, relation=fact.relation, values=values, gold=self._gold[subject, fact.relation].id
        )

    def _listed(self, holder: str, listing: str) -> Lookup:
        subject = self._universe.label(holder)
        values = tuple(self._universe.label(member) for member in self._universe.lists[holder, listing])
        return Lookup(subject=subject, relation=listing, values=values, gold=self._gold[subject, listing].id)

    def _path(self, hops: int) -> list[Fact] | None:
        """Facts that lead from one to the next, without coming back to anything."""
        path = [self._rng.choice(self._facts)]
        been = {path[0].subject}
        while len(path) < hops:
            nexts = self._by_subject.get(path[-1].object, [])
            been.add(path[-1].object)
            choices = [fact for fact in nexts if fact.object not in been]
            if not choices:
                return None
            path.append(self._rng.choice(choices))
        return path

    def _words(self, path: Sequence[Fact]) -> str:
        """The question in words: phrases nested from the first fact on, the last one asked."""
        subject = self._universe.label(path[0].subject)
        for fact in path[:-1]:
            subject = self._rng.choice(RELATIONS[fact.relation].phrases).format(s=subject)
        text = self._rng.choice(RELATIONS[path[-1].relation].asks).format(s=subject)
        return text[0].upper() + text[1:]

    def _answers(self, value: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self._universe.name(value), self._universe.label(value))))

    def _chain(self, hops: int) -> Question | None:
        path = self._path(hops)
        if path is None:
            return None
        return Question(
            id="",
            type="chain1",
            question=self._words(path),
            answers=self._answers(path[-1].object),
            supporting=(),
            hops=hops,
            plan=tuple((self._lookup(fact),) for fact in path),
            reveals=hops > 1,
        )

    def _choice(self) -> Question | None:
        question = self._chain(self._rng.choice((1, 2, 2)))
        if question is None:
            return None
        right, last = question.answers[0], question.plan[-1][0]
        kind = RELATIONS[last.relation].object
        others = {self._universe.name(f.object) for f in self._facts if RELATIONS[f.relation].object == kind}
        wrong = sorted(others - {right} - {w for w in others if w in question.question})
        if len(wrong) < 3 or right in question.question:
            return None
        options = [right, *self._rng.sample(wrong, 3)]
        self._rng.shuffle(options)
        text = f"{question.question} Options: {', '.join(options)}."
        return question.model_copy(update={"question": text, "candidates": tuple(options)})

    def _comparison(self) -> Question | None:
        if self._rng.random() < 1 / 3:
            return self._compare_named()
        return self._compare_revealed()

    def _compare_named(self) -> Question | None:
        relation, ask = self._rng.choice(
            (
                ("birth_year", ("Who was born {w}, {a} or {b}?", "Of {a} and {b}, who was born {w}?")),
                ("city_founded", ("Which city was founded {w}, {a} or {b}?",)),
                ("org_founded", ("Which company was founded {w}, {a} or {b}?",)),
                ("film_released", ("Which film was released {w}, {a} or {b}?",)),
                ("novel_published", ("Which novel was published {w}, {a} or {b}?",)),
            )
        )
        one, two = self._rng.sample(self._universe.of_kind(RELATIONS[relation].subject), 2)
        return self._compare(one, two, relation, ask, (), (one.label, two.label))

    def _compare_revealed(self) -> Question | None:
        paths = [self._path(1), self._path(1)]
        first, second = (path[0] for path in paths if path)
        people = self._universe.entities
        if first.subject == second.subject or first.object == second.object:
            return None
        if any(RELATIONS[fact.relation].object != "person" for fact in (first, second)):
            return None
        named = [
            self._rng.choice(RELATIONS[fact.relation].phrases).format(s=self._universe.label(fact.subject))
            for fact in (first, second)
        ]
        asks = ("Who was born {w}, {a} or {b}?", "Of {a} and {b}, who was born {w}?")
        round_one = (self._lookup(first), self._lookup(second))
        pair = people[first.object], people[second.object]
        return self._compare(*pair, "birth_year", asks, (round_one,), (named[0], named[1]))

    def _compare(
        self,
        one: Entity,
        two: Entity,
        relation: str,
        asks: Sequence[str],
        before: tuple[tuple[Lookup, ...], ...],
        named: tuple[str, str],
    ) -> Question | None:
        facts = [self._universe.facts[entity.id, relation] for entity in (one, two)]
        years = [int(fact.object) for fact in facts]
        if one.name == two.name or years[0] == years[1]:
            return None
        wanted: Literal["earlier", "later"] = self._rng.choice(("earlier", "later"))
        text = self._rng.choice(asks).format(w="first" if wanted == "earlier" else "last", a=named[0], b=named[1])
        winner = one if (years[0] < years[1]) == (wanted == "earlier") else two
        return Question(
            id="",
            type="comparison",
            question=text[0].upper() + text[1:],
            answers=self._answers(winner.id),
            supporting=(),
            hops=1 + len(before),
            plan=(*before, tuple(self._lookup(fact) for fact in facts)),
            asks=wanted,
            candidates=(one.label, two.label),
            reveals=bool(before),
        )

    def _intersection(self) -> Question | None:
        one, two, asks = self._rng.choice(
            (
                ("natives", "members", ("Which person {a} and {b}?", "Who {a} and {b}?")),
                ("films_by", "films_set", ("Which film {a} and {b}?", "What film {a} and {b}?")),
            )
        )
        holders = [holder for holder, name in self._universe.lists if name == one]
        first = self._rng.choice(holders)
        members = self._universe.lists[first, one]
        seconds = [h for (h, name), held in self._universe.lists.items() if name == two and set(held) & set(members)]
        if not seconds:
            return None
        second = self._rng.choice(seconds)
        both = [member for member in members if member in self._universe.lists[second, two]]
        if len(both) != 1 or len(members) < 2:
            return None
        clauses = [
            LISTINGS[name].clause.format(s=self._universe.label(holder))
            for holder, name in ((first, one), (second, two))
        ]
        lookups = [self._listed(first, one), self._listed(second, two)]
        if self._rng.random() < 0.5:
            clauses.reverse()
            lookups.reverse()
        return Question(
            id="",
            type="intersection",
            question=self._rng.choice(asks).format(a=clauses[0], b=clauses[1]),
            answers=self._answers(both[0]),
            supporting=(),
            hops=1,
            plan=(tuple(lookups),),
            reveals=True,
        )
