"""How facts become sentences: who is named how, what is joined to what, in which order. No facts are chosen here."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.world.relations import RELATIONS
from train.world.frames import NOUNS
from train.world.population import WorldEntity


@dataclass(frozen=True)
class Clause:
    """One fact about a subject: what its wordings are filled with."""

    relation: str
    object: str
    since: str = ""


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def fill(template: str, entity: WorldEntity, **values: str) -> str:
    """Put names and pronouns into a wording; "the the" of a name that brings its own article becomes one."""
    possessive = {"she": "her", "he": "his", "it": "its"}[entity.pronoun]
    him = {"she": "her", "he": "him", "it": "it"}[entity.pronoun]
    filled = template.format(**{"s": entity.label, "p": possessive, "he": entity.pronoun, "him": him} | values)
    return _TWICE.sub(r"\1", filled)


_TWICE = re.compile(r"\b([Tt]he) the\b")


class Teller:
    """Writes clauses about one subject in varied sentences."""

    def __init__(self, rng: random.Random, *, paraphrase: float) -> None:
        self._rng, self._paraphrase = rng, paraphrase

    def paragraph(self, entity: WorldEntity, clauses: Sequence[Clause], *, named: bool) -> str:
        """All clauses in the order in which they came; two may share a sentence.

        Args:
            entity: the subject.
            clauses: the facts.
            named: whether the subject was named just before, so that a pronoun is understood.
        """
        sentences: list[str] = []
        waiting = list(clauses)
        while waiting:
            subject = self._reference(entity, named=named or bool(sentences))
            pair = len(waiting) > 1 and self._rng.random() < 0.45
            sentences.append(
                self._joined(entity, subject, waiting[:2]) if pair else self._single(entity, subject, waiting[0])
            )
            waiting = waiting[2 if pair else 1 :]
        return " ".join(sentences)

    def _reference(self, entity: WorldEntity, *, named: bool) -> str:
        if not named or self._rng.random() < 0.12:
            return entity.label
        if entity.kind == "person":
            return self._rng.choice((entity.pronoun, entity.pronoun, entity.name.split()[-1]))
        return self._rng.choice(NOUNS[entity.kind])

    def _predicate(self, clause: Clause) -> str:
        relation = RELATIONS[clause.relation]
        far = relation.stated_far and self._rng.random() < self._paraphrase
        return self._rng.choice(relation.stated_far if far else relation.stated)

    def _single(self, entity: WorldEntity, subject: str, clause: Clause) -> str:
        sentences = RELATIONS[clause.relation].sentences
        if subject != entity.label and sentences and self._rng.random() < 0.35:
            return self._sentence(self._rng.choice(sentences), entity, clause)
        return self._sentence(f"{subject} {self._predicate(clause)}.", entity, clause)

    def _joined(self, entity: WorldEntity, subject: str, pair: Sequence[Clause]) -> str:
        one, two = (fill(self._predicate(clause), entity, o=clause.object, since=clause.since) for clause in pair)
        while one.split()[:2] == two.split()[:2]:  # "was born in Tarnton and was born in 1980"
            two = fill(self._predicate(pair[1]), entity, o=pair[1].object, since=pair[1].since)
        trails = [trail for trail in RELATIONS[pair[0].relation].trail if trail.split()[0] not in two.split()]
        form = self._rng.choice(("and", "who", "trail" if trails else "and"))
        if form == "trail":
            trail = fill(self._rng.choice(trails), entity, o=pair[0].object)
            return self._sentence(f"{trail}, {subject} {two}.", entity, pair[1])
        if form == "who" and subject not in ("she", "he", "it"):
            pronoun = "who" if entity.kind == "person" else "which"
            return self._sentence(f"{subject}, {pronoun} {one}, {two}.", entity, pair[1])
        return self._sentence(f"{subject} {one} and {two}.", entity, pair[1])

    def _sentence(self, text: str, entity: WorldEntity, clause: Clause) -> str:
        return capital(fill(text, entity, o=clause.object, since=clause.since))
