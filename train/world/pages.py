"""What is written about a shard: encyclopedia pages, lists and hearsay (web), abstracts (arxiv), triples (kg)."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from agent.world.difficulty import Difficulty
from agent.world.records import Document, Stated
from agent.world.relations import LISTINGS, RELATIONS, noun_of
from train.world.frames import CLOSINGS, FILLERS, HEARSAY_CLOSINGS, HEARSAY_TITLES, LEADS, OPENINGS, SECTIONS
from train.world.grammar import Clause, Teller, article, capital, fill
from train.world.population import WorldEntity
from train.world.universe import Universe, WorldFact

_REVISED = date(2024, 1, 8)
_HEARSAY = date(2009, 3, 2)


@dataclass(frozen=True)
class PageDraft:
    """A document that has no id yet."""

    source: str
    title: str
    text: str
    states: tuple[Stated, ...] = ()
    date: str = ""
    place: str = ""
    """Part of its address: where the less reliable pages stand."""

    def numbered(self, shard: str, number: int) -> Document:
        place = f"{self.place or self.source}.little.world"
        return Document(
            id=f"{self.source}-{shard}-{number}",
            source=self.source,
            title=self.title,
            text=self.text,
            url=f"https://{place}/{shard}/{number}",
            date=self.date,
            states=self.states,
        )


class PageWriter:
    """Writes everything but the news, once."""

    def __init__(self, universe: Universe, rng: random.Random, difficulty: Difficulty) -> None:
        self._universe, self._rng, self._difficulty = universe, rng, difficulty
        self._teller = Teller(rng, paraphrase=difficulty.paraphrase)
        self._facts: dict[str, list[WorldFact]] = {}
        for fact in universe.facts.values():
            self._facts.setdefault(fact.subject, []).append(fact)

    def write(self) -> Iterator[PageDraft]:
        for entity in self._universe.entities.values():
            facts = self._facts.get(entity.id, [])
            if entity.kind == "paper":
                yield self._abstract(entity, facts)
            elif entity.kind != "society":
                yield from self._page(entity, facts)
        yield from self._lists()
        yield from self._hearsay()
        yield from self._triples()

    def _page(self, entity: WorldEntity, facts: Sequence[WorldFact]) -> Iterator[PageDraft]:
        stated = [fact for fact in facts if _is_in(fact, "web")]
        if not stated:
            return
        sections: dict[str, list[WorldFact]] = {}
        for fact in stated:
            sections.setdefault(SECTIONS[fact.relation], []).append(fact)
        order = list(sections)
        self._rng.shuffle(order)
        first = sections[order[0]]
        parts = [self._lead(entity), self._section(entity, first)]
        for heading in order[1:]:
            start = f"{heading}: " if len(order) > 2 else ""
            parts.append(start + self._section(entity, sections[heading]))
        if self._rng.random() < 0.5:
            parts.append(self._rng.choice(FILLERS[entity.kind]))
        states = tuple(one for fact in stated for one in self._states(fact))
        day = _REVISED + timedelta(days=self._rng.randint(0, 350))
        yield PageDraft("web", capital(entity.title), " ".join(parts), states, day.isoformat())

    def _lead(self, entity: WorldEntity) -> str:
        kind = article(entity.note) if entity.note else ""
        return capital(fill(self._rng.choice(LEADS[entity.kind]), entity, s=entity.name, a=kind))

    def _section(self, entity: WorldEntity, facts: Sequence[WorldFact]) -> str:
        """The facts of one section, and what held before."""
        facts = self._rng.sample(facts, len(facts))
        clauses: list[Clause] = []
        past: list[str] = []
        for fact in facts:
            known = fact.tenures[: len(fact.tenures) - fact.stale]
            value, since = (known[-1].value, str(known[-1].since)) if known else (fact.object, "")
            clauses.append(Clause(fact.relation, self._universe.label(value), since))
            for tenure in known[:-1]:
                wording = self._rng.choice(RELATIONS[fact.relation].past)
                name = self._universe.label(tenure.value)
                past.append(capital(fill(wording, entity, o=name, since=str(tenure.since), until=str(tenure.until))))
        if self._rng.random() < 0.5:
            past.reverse()
        return " ".join([self._teller.paragraph(entity, clauses, named=True), *past])

    def _states(self, fact: WorldFact) -> Iterator[Stated]:
        subject, label = self._universe.label(fact.subject), self._universe.label
        if not fact.tenures:
            yield Stated(subject=subject, relation=fact.relation, values=(label(fact.object),))
            listing = _SCATTERED.get(fact.relation)
            if listing:
                yield Stated(subject=label(fact.object), relation=listing, values=(subject,))
            return
        known = fact.tenures[: len(fact.tenures) - fact.stale]
        before = ""
        for tenure in known:
            last = tenure is known[-1]
            yield Stated(
                subject=subject,
                relation=fact.relation,
                values=(label(tenure.value),),
                outdated=not last or bool(fact.stale),
                since=str(tenure.since),
                until="" if last else str(tenure.until),
                follows=before,
            )
            before = label(tenure.value)

    def _abstract(self, entity: WorldEntity, facts: Sequence[WorldFact]) -> PageDraft:
        stated = [fact for fact in facts if _is_in(fact, "arxiv")]
        sentences = [
            capital(fill(self._wording(fact.relation), entity, o=self._universe.label(fact.object)))
            for fact in self._rng.sample(stated, len(stated))
        ]
        ends = self._rng.choice(OPENINGS), self._rng.choice(CLOSINGS)
        text = " ".join([ends[0], *sentences[:1], self._rng.choice(FILLERS["paper"]), *sentences[1:], ends[1]])
        states = tuple(one for fact in stated for one in self._states(fact))
        day = date(2015, 1, 1) + timedelta(days=self._rng.randint(0, 3300))
        return PageDraft("arxiv", entity.name, text, states, day.isoformat())

    def _wording(self, relation: str) -> str:
        """The first three sentences of an abstract's relation come near the standard query, the others are far."""
        sentences = RELATIONS[relation].sentences
        return self._rng.choice(sentences[3:] if self._rng.random() < self._difficulty.paraphrase else sentences[:3])

    def _lists(self) -> Iterator[PageDraft]:
        for (holder, name), members in self._universe.lists.items():
            listing = LISTINGS[name]
            if listing.source != "web" or listing.scattered:
                continue
            subject, labels = self._universe.label(holder), tuple(self._universe.label(member) for member in members)
            text = capital(self._rng.choice(listing.stated).format(s=subject, o=", ".join(labels)))
            states = (Stated(subject=subject, relation=name, values=labels),)
            yield PageDraft("web", f"List of {listing.noun} {subject}", text, states, _REVISED.isoformat())

    def _hearsay(self) -> Iterator[PageDraft]:
        """Pages that contradict: older, on a forum, and without a source."""
        for fact in self._universe.facts.values():
            if not fact.rumour:
                continue
            entity, value = self._universe.entities[fact.subject], self._universe.label(fact.rumour)
            said = fill(self._rng.choice(RELATIONS[fact.relation].hearsay), entity, o=value)
            title = fill(self._rng.choice(HEARSAY_TITLES), entity)
            text = capital(f"{said} {self._rng.choice(HEARSAY_CLOSINGS)}")
            states = (Stated(subject=entity.label, relation=fact.relation, values=(value,), doubtful=True),)
            day = _HEARSAY + timedelta(days=self._rng.randint(0, 4000))
            yield PageDraft("web", capital(title), text, states, day.isoformat(), "forum")

    def _triples(self) -> Iterator[PageDraft]:
        for fact in self._universe.facts.values():
            if _is_in(fact, "kg"):
                stated = next(self._states(fact))
                yield self._triple(fact.subject, fact.relation, stated.values, stated)
        for (holder, name), members in self._universe.lists.items():
            if LISTINGS[name].source == "kg":
                labels = tuple(self._universe.label(member) for member in members)
                stated = Stated(subject=self._universe.label(holder), relation=name, values=labels)
                yield self._triple(holder, name, labels, stated)

    def _triple(self, subject: str, name: str, tails: Sequence[str], stated: Stated) -> PageDraft:
        entity = self._universe.entities[subject]
        alias = ""
        if entity.kind == "person" and self._rng.random() < 0.3:
            first, last = entity.name.split()
            alias = f" (also {first[0]}. {last})"
        return PageDraft("kg", "", f"{entity.title}{alias} | {noun_of(name)} | {'; '.join(tails)}", (stated,))


def _is_in(fact: WorldFact, source: str) -> bool:
    """Whether a source states the fact: its own, and where it is copied, the graph or the encyclopedia."""
    home = RELATIONS[fact.relation].sources
    return source in home or (fact.copied and not fact.tenures and source == ("web" if "kg" in home else "kg"))


_SCATTERED = {listing.scattered: name for name, listing in LISTINGS.items() if listing.scattered}
