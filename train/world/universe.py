"""The facts of one shard of a world, before anything is written: who exists, what holds, what used to hold."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.world.difficulty import Difficulty
from agent.world.names import Split
from agent.world.relations import LISTINGS, RELATIONS
from train.world.population import THINGS, WorldEntity, populate
from train.world.vocabulary import ShardWords

_YEARS = {
    "birth_year": (1930, 2001),
    "city_founded": (1105, 1899),
    "org_founded": (1900, 1999),
    "school_founded": (1350, 1950),
    "film_released": (1960, 2023),
    "novel_published": (1960, 2023),
}
_UNKNOWN = {
    "birthplace": 0.08, "birth_year": 0.06, "spouse": 0.25, "mentor": 0.2, "studied": 0.2, "employer": 0.08,
    "founder": 0.08, "composer": 0.2, "setting": 0.1, "publisher": 0.12, "twin": 0.1, "headquarters": 0.06,
    "data": 0.1, "city_founded": 0.1, "winner": 0.08,
}  # fmt: skip
"""Share of subjects of which no document says it: the ground of questions without an answer."""
NEWS_FROM = 2025
"""Pages were last revised in the year before; what changed since is in the news."""


@dataclass(frozen=True)
class Tenure:
    """What held from one year until the next one's."""

    value: str
    since: int
    until: int = 0
    """0: it still holds."""


@dataclass(frozen=True)
class WorldFact:
    """`subject relation object`; the object is an entity id or, for years and words, the value itself."""

    subject: str
    relation: str
    object: str
    tenures: tuple[Tenure, ...] = ()
    """Of what changes, oldest first; the last one is the object's."""
    stale: int = 0
    """How many of the last tenures the page does not know of."""
    copied: bool = False
    """Whether it is in a second source, too."""
    rumour: str = ""
    """The wrong value that a less reliable page gives."""


@dataclass
class Universe:
    """Everything that is true in one shard of a world."""

    entities: dict[str, WorldEntity] = field(default_factory=dict[str, WorldEntity])
    facts: dict[tuple[str, str], WorldFact] = field(default_factory=dict[tuple[str, str], WorldFact])
    lists: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict[tuple[str, str], tuple[str, ...]])
    """(subject, listing) → members in the order in which they are listed."""
    strangers: tuple[str, ...] = ()
    """Names of people that nothing in the world speaks of."""

    def __post_init__(self) -> None:
        self._kinds: dict[str, list[WorldEntity]] = {}
        for entity in self.entities.values():
            self._kinds.setdefault(entity.kind, []).append(entity)

    def of_kind(self, kind: str) -> list[WorldEntity]:
        return self._kinds.get(kind, [])

    def label(self, value: str) -> str:
        """The label of an entity, or the plain value itself."""
        entity = self.entities.get(value)
        return entity.label if entity else value

    def name(self, value: str) -> str:
        entity = self.entities.get(value)
        return entity.name if entity else value


def make_universe(
    rng: random.Random, *, split: Split, seed: int, shard: int, people: int, difficulty: Difficulty
) -> Universe:
    """Make a consistent shard: no person marries or teaches themselves, marriages and twin cities go both ways."""
    vocabulary = ShardWords(rng, split, seed=seed, shard=shard)
    entities = populate(vocabulary, rng, people=people, difficulty=difficulty)
    strangers = tuple(vocabulary.person(vocabulary.word("last")) for _ in range(3))
    universe = Universe({entity.id: entity for entity in entities}, strangers=strangers)
    _Founding(universe, vocabulary, rng, difficulty).make()
    return universe


class _Founding:
    """Gives a populated universe its facts."""

    def __init__(self, universe: Universe, vocabulary: ShardWords, rng: random.Random, difficulty: Difficulty) -> None:
        self._universe, self._vocabulary, self._rng, self._difficulty = universe, vocabulary, rng, difficulty

    def make(self) -> None:
        universe = self._universe
        self._pair("spouse", universe.of_kind("person"))
        self._pair("twin", universe.of_kind("city"))
        self._listed()
        self._capitals()
        for relation in RELATIONS.values():
            for subject in universe.of_kind(relation.subject):
                if (subject.id, relation.name) not in universe.facts and relation.name not in _GIVEN:
                    self._state(subject, relation.name)
        for subject in universe.of_kind("society"):
            people = [entity.id for entity in universe.of_kind("person")]
            universe.lists[subject.id, "members"] = tuple(self._rng.sample(people, self._rng.randint(2, 5)))

    def _unknown(self, relation: str) -> bool:
        return self._rng.random() < _UNKNOWN.get(relation, 0)

    def _pair(self, relation: str, entities: Sequence[WorldEntity]) -> None:
        order = [entity.id for entity in entities]
        self._rng.shuffle(order)
        for one, two in zip(order[::2], order[1::2], strict=False):
            if not self._unknown(relation) and self._universe.name(one) != self._universe.name(two):
                self._add(one, relation, two)
                self._add(two, relation, one)

    def _capitals(self) -> None:
        """Every country has cities, and one of them is its capital."""
        cities = [entity.id for entity in self._universe.of_kind("city")]
        countries = [entity.id for entity in self._universe.of_kind("country")]
        self._rng.shuffle(cities)
        for place, city in enumerate(cities):
            country = countries[place % len(countries)]
            self._add(city, "country", country)
            if place < len(countries):
                self._add(country, "capital", city)

    def _listed(self) -> None:
        """Facts that documents also give as lists: each holder gets one to five members."""
        for name, relation in _LISTED.items():
            listing = LISTINGS[name]
            members = [e.id for e in self._universe.of_kind(listing.member) if not self._unknown(relation)]
            holders = [entity.id for entity in self._universe.of_kind(listing.subject)]
            if name in ("films_by", "films_set", "novels_by"):
                holders = self._rng.sample(holders, max(2, len(members) * 2 // 5))
            dealt: dict[str, list[str]] = {}
            for member in members:
                least = [holder for holder in holders if len(dealt.get(holder, ())) < 5]
                holder = self._rng.choice(least or holders)
                self._add(member, relation, holder)
                dealt.setdefault(holder, []).append(member)
            for holder, held in dealt.items():
                self._universe.lists[holder, name] = tuple(held)

    def _state(self, subject: WorldEntity, name: str) -> None:
        relation, rng = RELATIONS[name], self._rng
        if self._unknown(name):
            return
        if relation.object == "year":
            self._add(subject.id, name, str(rng.randint(*_YEARS[name])))
        elif relation.object == "word":
            self._add(subject.id, name, self._vocabulary.word("thing"))
        elif relation.changes:
            self._change(subject, name)
        else:
            self._add(subject.id, name, self._others(subject, name, 1)[0])

    def _others(self, subject: WorldEntity, name: str, count: int) -> list[str]:
        kind = RELATIONS[name].object
        others = [e.id for e in self._universe.of_kind(kind) if e.name != subject.name]
        if len(others) < count:
            raise ValueError(f"this world is too small: it has {len(others)} of {count} others for the relation {name}")
        return self._rng.sample(others, count)

    def _change(self, subject: WorldEntity, name: str) -> None:
        rng = self._rng
        stale = 0
        if rng.random() < self._difficulty.staleness:
            stale = 2 if rng.random() < 0.3 else 1
        known = rng.choice((1, 2, 2, 3))
        values = self._others(
            subject, name, min(known + stale, len(self._universe.of_kind(RELATIONS[name].object)) - 2)
        )
        stale = min(stale, len(values) - 1)
        starts = sorted(rng.sample(range(2001, NEWS_FROM - 2, 2), len(values) - stale))
        starts += list(range(NEWS_FROM, NEWS_FROM + stale))
        ends = [*starts[1:], 0]
        tenures = tuple(Tenure(*part) for part in zip(values, starts, ends, strict=True))
        self._universe.facts[subject.id, name] = WorldFact(
            subject.id, name, values[-1], tenures=tenures, stale=stale, rumour=self._rumour(subject.id, name, values)
        )

    def _add(self, subject: str, name: str, value: str) -> None:
        copied = self._rng.random() >= self._difficulty.exclusivity and RELATIONS[name].sources != ("news",)
        rumour = self._rumour(subject, name, (value,))
        self._universe.facts[subject, name] = WorldFact(subject, name, value, copied=copied, rumour=rumour)

    def _rumour(self, subject: str, name: str, values: Sequence[str]) -> str:
        relation, rng = RELATIONS[name], self._rng
        if not relation.hearsay or rng.random() >= self._difficulty.contradiction:
            return ""
        if relation.object == "year":
            return str(int(values[0]) + rng.choice((-9, -4, -2, 2, 3, 7)))
        others = [e.id for e in self._universe.of_kind(relation.object) if e.id not in (*values, subject)]
        return rng.choice(others) if others else ""


_LISTED = {
    "natives": "birthplace",
    "films_by": "director",
    "films_set": "setting",
    "alumni": "studied",
    "novels_by": "author",
}
_GIVEN = {"spouse", "twin", "country", "capital", *_LISTED.values()}
assert set(THINGS) >= {relation.subject for relation in RELATIONS.values()} - {"person"}
