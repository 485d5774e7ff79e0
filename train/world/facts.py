"""What a question can rest on: the facts of a universe, the documents that state them, and the paths between them."""

import random
from collections.abc import Callable, Sequence

from agent.world.difficulty import Difficulty
from agent.world.records import Document, Lookup, Stated
from agent.world.relations import RELATIONS, sources_of
from train.world.universe import Universe, WorldFact


class Ground:
    """A universe with its documents, ready for questions."""

    def __init__(
        self, universe: Universe, documents: Sequence[Document], rng: random.Random, difficulty: Difficulty
    ) -> None:
        self.universe, self.rng, self.difficulty = universe, rng, difficulty
        self._stating: dict[tuple[str, str], list[tuple[Document, Stated]]] = {}
        for document in documents:
            for stated in document.states:
                self._stating.setdefault((stated.subject, stated.relation), []).append((document, stated))
        self.facts = list(universe.facts.values())
        self._by_subject: dict[str, list[WorldFact]] = {}
        for fact in self.facts:
            self._by_subject.setdefault(fact.subject, []).append(fact)

    def about(self, subject: str) -> list[WorldFact]:
        return self._by_subject.get(subject, [])

    def lookup(self, fact: WorldFact) -> Lookup:
        """The look-up of a fact as it is now."""
        return self._found(self.universe.label(fact.subject), fact.relation, (self.universe.label(fact.object),))

    def listed(self, holder: str, listing: str) -> Lookup:
        """The look-up of a listing; where documents state it one by one, all of them are gold."""
        values = tuple(self.universe.label(member) for member in self.universe.lists[holder, listing])
        return self._found(self.universe.label(holder), listing, values)

    def at(
        self, fact: WorldFact, values: Sequence[str], proves: Callable[[Stated], bool], **when: str
    ) -> Lookup | None:
        """A look-up about time, if a document that is not doubtful proves it."""
        subject = self.universe.label(fact.subject)
        for document, stated in self._stating[subject, fact.relation]:
            if not stated.doubtful and stated.since and proves(stated):
                lookup = Lookup(subject=subject, relation=fact.relation, values=tuple(values), gold=document.id)
                return lookup.model_copy(update=when)
        return None

    def missing(self, subject: str, relation: str, **when: str) -> Lookup:
        """A look-up that finds nothing."""
        return Lookup(subject=subject, relation=relation, values=(), gold="").model_copy(update=when)

    def source(self, lookup: Lookup) -> str:
        """The source of its gold document."""
        return lookup.gold.split("-", 1)[0]

    def _found(self, subject: str, relation: str, values: tuple[str, ...]) -> Lookup:
        home = sources_of(relation)
        true = [
            (document, stated)
            for document, stated in self._stating[subject, relation]
            if not stated.outdated and not stated.doubtful
        ]
        whole = [document for document, stated in true if stated.values == values]
        if not whole:
            ids = tuple(document.id for document, _ in true)
            return Lookup(subject=subject, relation=relation, values=values, gold=ids[0], also=ids[1:])
        best = next((document for document in reversed(whole) if document.source in home), whole[0])
        return Lookup(subject=subject, relation=relation, values=values, gold=best.id)

    def answers(self, value: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.universe.name(value), self.universe.label(value))))

    def path(self, hops: int) -> list[WorldFact] | None:
        """Facts that lead from one to the next, without coming back to anything."""
        path = [self.rng.choice(self.facts)]
        been = {path[0].subject}
        while len(path) < hops:
            been.add(path[-1].object)
            choices = [fact for fact in self.about(path[-1].object) if fact.object not in been]
            if not choices:
                return None
            path.append(self.rng.choice(choices))
        return path

    def wording(self, near: Sequence[str], far: Sequence[str]) -> str:
        """One of the wordings, far from the standard query as often as the world paraphrases."""
        return self.rng.choice(far if far and self.rng.random() < self.difficulty.paraphrase else near)

    def phrase(self, relation: str, subject: str) -> str:
        known = RELATIONS[relation]
        return self.wording(known.phrases, known.phrases_far).format(s=subject)

    def ask(self, relation: str, subject: str) -> str:
        known = RELATIONS[relation]
        text = self.wording(known.asks, known.asks_far).format(s=subject)
        return text[0].upper() + text[1:]

    def subject_of(self, path: Sequence[WorldFact]) -> str:
        """What a path of facts leads to, in words: phrases nested from the first fact on."""
        subject = self.universe.label(path[0].subject)
        for fact in path:
            subject = self.phrase(fact.relation, subject)
        return subject
