"""The facts of a little world, before anything is written down: who exists, what holds, and what used to hold."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.world.names import Namer, Split
from agent.world.v1.relations import LISTINGS, PROFESSIONS, RELATIONS

_PAPER_NOUNS = ("Problem", "Limit", "Lattice", "Paradox", "Kernel", "Effect")
_ORG_NOUNS = ("Labs", "Works", "Group", "Motors")
_FILM_NOUNS = ("River", "Garden", "Signal", "Winter", "Bridge", "Harbour")
_NOVEL_NOUNS = ("Year", "House", "Child", "Song")
_EVENT_NOUNS = ("Prize", "Festival", "Regatta", "Summit")


@dataclass(frozen=True)
class Entity:
    """Something with a page. Two people may share a name; then `note` (the profession) tells them apart."""

    id: str
    kind: str
    name: str
    note: str = ""
    namesake: bool = False

    @property
    def label(self) -> str:
        """How texts speak of it: "Lina Orr", or "the chemist Lina Orr" where there are two."""
        return f"the {self.note} {self.name}" if self.namesake else self.name

    @property
    def title(self) -> str:
        """How pages are headed: "Lina Orr", or "Lina Orr (chemist)"."""
        return f"{self.name} ({self.note})" if self.namesake else self.name


@dataclass(frozen=True)
class Fact:
    """`subject relation object`; the object is an entity id or, for years and words, the value itself."""

    subject: str
    relation: str
    object: str
    was: str = ""
    """What the undated page still says, where news changed the fact."""


@dataclass(frozen=True)
class Size:
    """How much of everything a world holds. `of(n)` scales it by the number of people."""

    people: int
    things: dict[str, int]
    """Kind → how many."""

    @classmethod
    def of(cls, people: int) -> "Size":
        """Raises `ValueError` below 30 people: too few for lists, pairs and wrong options."""
        if people < 30:
            raise ValueError("a world needs at least 30 people")
        return cls(
            people=people,
            things={
                "city": people // 4,
                "country": max(4, people // 20),
                "org": people // 4,
                "film": people // 4,
                "novel": people // 8,
                "event": people // 6,
                "paper": people // 6,
                "society": people // 10,
            },
        )


@dataclass
class Universe:
    """Everything that is true in one world."""

    entities: dict[str, Entity] = field(default_factory=dict[str, Entity])
    facts: dict[tuple[str, str], Fact] = field(default_factory=dict[tuple[str, str], Fact])
    lists: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict[tuple[str, str], tuple[str, ...]])
    """(subject, listing) → members in the order in which they are told."""

    def of_kind(self, kind: str) -> list[Entity]:
        return [entity for entity in self.entities.values() if entity.kind == kind]

    def label(self, value: str) -> str:
        """The label of an entity, or the plain value itself."""
        entity = self.entities.get(value)
        return entity.label if entity else value

    def name(self, value: str) -> str:
        entity = self.entities.get(value)
        return entity.name if entity else value


def make_universe(rng: random.Random, *, split: Split, size: Size) -> Universe:
    """Make a consistent world: nobody marries or teaches themselves, marriages and twin cities go both ways."""
    universe = Universe()
    _populate(universe, rng, split=split, size=size)
    _pair(universe, rng, "spouse", universe.of_kind("person"))
    _pair(universe, rng, "twin", universe.of_kind("city"))
    for relation in RELATIONS.values():
        if relation.name in ("spouse", "twin", "director", "setting", "birthplace"):
            continue
        for subject in universe.of_kind(relation.subject):
            _state(universe, rng, subject, relation.name, split=split)
    _lists(universe, rng)
    return universe


def _populate(universe: Universe, rng: random.Random, *, split: Split, size: Size) -> None:
    namer = Namer(rng, split)

    def add(kind: str, name: str, **more: str | bool) -> None:
        key = f"{kind}-{len(universe.entities)}"
        universe.entities[key] = Entity(key, kind, name, **more)  # type: ignore[arg-type]

    people = 0
    while people < size.people:
        name = namer.person()
        one, two = rng.sample(PROFESSIONS, 2)
        shared = rng.random() < 0.2
        add("person", name, note=one, namesake=shared)
        if shared:
            add("person", name, note=two, namesake=True)
        people += 1 + shared
    for kind, count in size.things.items():
        for _ in range(count):
            add(kind, _thing_name(kind, namer, rng))


def _thing_name(kind: str, namer: Namer, rng: random.Random) -> str:
    match kind:
        case "org":
            return f"{namer.word('org')} {rng.choice(_ORG_NOUNS)}"
        case "film":
            return f"The {namer.word('work')} {rng.choice(_FILM_NOUNS)}"
        case "novel":
            return f"{rng.choice(('A', 'My'))} {namer.word('work')} {rng.choice(_NOVEL_NOUNS)}"
        case "event":
            return f"the {namer.word('thing')} {rng.choice(_EVENT_NOUNS)}"
        case "paper":
            return f"On the {namer.word('thing')} {rng.choice(_PAPER_NOUNS)}"
        case "society":
            return f"the {namer.word('thing')} Society"
        case _:
            return namer.word(kind)


def _pair(universe: Universe, rng: random.Random, relation: str, entities: Sequence[Entity]) -> None:
    order = [entity.id for entity in entities]
    rng.shuffle(order)
    for one, two in zip(order[::2], order[1::2], strict=False):
        universe.facts[one, relation] = Fact(one, relation, two)
        universe.facts[two, relation] = Fact(two, relation, one)


def _state(universe: Universe, rng: random.Random, subject: Entity, name: str, *, split: Split) -> None:
    relation = RELATIONS[name]
    if relation.object == "year":
        value = str(rng.randint(*_YEARS[name]))
        universe.facts[subject.id, name] = Fact(subject.id, name, value)
        return
    if relation.object == "word":
        value = Namer(rng, split).word("thing")
        universe.facts[subject.id, name] = Fact(subject.id, name, value)
        return
    others = [e.id for e in universe.of_kind(relation.object) if e.name != subject.name]
    now, before = rng.sample(others, 2)
    changed = relation.changes and rng.random() < 0.5
    universe.facts[subject.id, name] = Fact(subject.id, name, now, was=before if changed else "")


_YEARS = {
    "birth_year": (1930, 2001),
    "city_founded": (1105, 1899),
    "org_founded": (1900, 2019),
    "film_released": (1960, 2023),
    "novel_published": (1960, 2023),
}


def _lists(universe: Universe, rng: random.Random) -> None:
    """Facts that are also told as lists: natives, members, films by director and by setting. Three or four a list."""
    people = [e.id for e in universe.of_kind("person")]
    cities = [e.id for e in universe.of_kind("city")]
    films = [e.id for e in universe.of_kind("film")]
    _deal(universe, rng, "natives", "birthplace", people, cities)
    _deal(universe, rng, "films_by", "director", films, rng.sample(people, max(2, len(films) // 3)))
    _deal(universe, rng, "films_set", "setting", films, rng.sample(cities, max(2, len(films) // 3)))
    for society in universe.of_kind("society"):
        universe.lists[society.id, "members"] = tuple(rng.sample(people, 3))
    assert {name for _, name in universe.lists} == set(LISTINGS)


def _deal(
    universe: Universe, rng: random.Random, listing: str, relation: str, members: Sequence[str], holders: Sequence[str]
) -> None:
    dealt: dict[str, list[str]] = {}
    places = [holders[i % len(holders)] for i in range(len(members))]
    rng.shuffle(places)
    for member, holder in zip(members, places, strict=True):
        universe.facts[member, relation] = Fact(member, relation, holder)
        dealt.setdefault(holder, []).append(member)
    for holder, held in dealt.items():
        rng.shuffle(held)
        universe.lists[holder, listing] = tuple(held)
