"""What is written about a universe: encyclopedia pages (web), dated reports (news), abstracts (arxiv), triples (kg)."""

import random
from collections.abc import Iterator
from datetime import date, timedelta

from agent.world.records import Document, Stated
from agent.world.v1.relations import LISTINGS, RELATIONS
from agent.world.v1.universe import Entity, Fact, Universe

_FIRST_NEWS = date(2025, 1, 6)


def write_documents(universe: Universe, rng: random.Random) -> list[Document]:
    """Write everything down once. The order is the order of the ids."""
    drafts = [*_pages(universe, rng), *_list_pages(universe, rng), *_reports(universe, rng), *_triples(universe)]
    documents: list[Document] = []
    for number, (source, title, text, day, states) in enumerate(drafts):
        key = f"{source}-{number}"
        url = f"https://{source}.little.world/{number}"
        documents.append(Document(id=key, source=source, title=title, text=text, url=url, date=day, states=states))
    return documents


_Draft = tuple[str, str, str, str, tuple[Stated, ...]]


def _pages(universe: Universe, rng: random.Random) -> Iterator[_Draft]:
    for entity in universe.entities.values():
        source = "arxiv" if entity.kind == "paper" else "web"
        facts = [
            fact
            for (subject, name), fact in universe.facts.items()
            if subject == entity.id and source in RELATIONS[name].sources and RELATIONS[name].told
        ]
        if not facts:
            continue
        rng.shuffle(facts)
        sentences = [_about(entity)] if entity.kind in ("person", "paper") else []
        states: list[Stated] = []
        for fact in facts:
            value = fact.was or fact.object
            sentences.append(_sentence(universe, rng, entity, fact, value))
            states.append(_stated(universe, fact, value, outdated=bool(fact.was)))
        yield source, _title(entity), " ".join(sentences), "", tuple(states)


def _title(entity: Entity) -> str:
    return entity.title[0].upper() + entity.title[1:]


def _about(entity: Entity) -> str:
    if entity.kind == "person":
        article = "an" if entity.note[0] in "aeiou" else "a"
        return f"{entity.name} is {article} {entity.note}."
    return "A short paper."


def _sentence(universe: Universe, rng: random.Random, entity: Entity, fact: Fact, value: str) -> str:
    subject = entity.name
    told = rng.choice(RELATIONS[fact.relation].told)
    text = told.format(s=subject, S=rng.choice((subject.split()[0], subject)), o=universe.label(value))
    return text[0].upper() + text[1:]


def _stated(universe: Universe, fact: Fact, value: str, *, outdated: bool = False) -> Stated:
    values = (universe.label(value),)
    return Stated(subject=universe.label(fact.subject), relation=fact.relation, values=values, outdated=outdated)


def _list_pages(universe: Universe, rng: random.Random) -> Iterator[_Draft]:
    for (holder, name), members in universe.lists.items():
        listing = LISTINGS[name]
        if listing.source != "web":
            continue
        subject, labels = universe.label(holder), tuple(universe.label(member) for member in members)
        title = f"List of {listing.noun} {subject}"
        text = rng.choice(listing.told).format(s=subject, o=", ".join(labels))
        yield "web", title, text, "", (Stated(subject=subject, relation=name, values=labels),)


def _reports(universe: Universe, rng: random.Random) -> Iterator[_Draft]:
    """News of what changed and of events; sometimes an older report of a step in between, which is outdated too."""
    for fact in universe.facts.values():
        relation = RELATIONS[fact.relation]
        if "news" not in relation.sources or (relation.changes and not fact.was):
            continue
        day = _FIRST_NEWS + timedelta(days=rng.randint(200, 500))
        between = ""
        if relation.changes and rng.random() < 0.2:
            others = [e.id for e in universe.of_kind(relation.object) if e.id not in (fact.object, fact.was)]
            between = rng.choice([other for other in others if other != fact.subject])
            earlier = day - timedelta(days=rng.randint(40, 190))
            yield _report(universe, rng, fact, between, fact.was, earlier, outdated=True)
        yield _report(universe, rng, fact, fact.object, between or fact.was, day)


def _report(
    universe: Universe, rng: random.Random, fact: Fact, now: str, old: str, day: date, *, outdated: bool = False
) -> _Draft:
    subject = universe.label(fact.subject)
    told = rng.choice(RELATIONS[fact.relation].news).format(s=subject, o=universe.label(now), old=universe.label(old))
    title, text = told.split(" — ", 1)
    states = (_stated(universe, fact, now, outdated=outdated),)
    return "news", title[0].upper() + title[1:], text[0].upper() + text[1:], day.isoformat(), states


def _triples(universe: Universe) -> Iterator[_Draft]:
    for head, noun, tails, states in triples(universe):
        yield "kg", "", f"{head} | {noun} | {'; '.join(tails)}", "", (states,)


def triples(universe: Universe) -> Iterator[tuple[str, str, tuple[str, ...], Stated]]:
    """The knowledge graph: head, relation, tails, and the statement."""
    for fact in universe.facts.values():
        if "kg" in RELATIONS[fact.relation].sources or fact.relation in ("birthplace", "country"):
            values = (universe.label(fact.object),)
            stated = Stated(subject=universe.label(fact.subject), relation=fact.relation, values=values)
            yield _heading(universe, fact.subject), RELATIONS[fact.relation].noun, values, stated
    for (holder, name), members in universe.lists.items():
        if LISTINGS[name].source == "kg":
            labels = tuple(universe.label(member) for member in members)
            stated = Stated(subject=universe.label(holder), relation=name, values=labels)
            yield _heading(universe, holder), LISTINGS[name].noun, labels, stated


def _heading(universe: Universe, key: str) -> str:
    return universe.entities[key].title
