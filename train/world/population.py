"""Who and what exists in one shard of a world, and how it is called."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from agent.world.difficulty import Difficulty
from agent.world.names import NOUNS, PLACE_PREFIXES
from agent.world.relations import PROFESSIONS
from agent.world.scope import Pronoun
from train.world.vocabulary import ShardWords

THINGS = {
    "city": (0.25, 4), "country": (0.05, 2), "org": (0.25, 4), "film": (0.25, 3), "novel": (0.15, 2),
    "event": (0.15, 1), "paper": (0.15, 1), "society": (0.1, 1), "school": (0.06, 1),
}  # fmt: skip
"""Kind → how many for each person, and at least."""


@dataclass(frozen=True)
class WorldEntity:
    """Something with a page. Two people may share a name; then `note` (the profession) distinguishes them."""

    id: str
    kind: str
    name: str
    note: str = ""
    namesake: bool = False
    pronoun: Pronoun = "it"

    @property
    def label(self) -> str:
        """How texts speak of it: "Lina Orr", or "the chemist Lina Orr" where there are two."""
        return f"the {self.note} {self.name}" if self.namesake else self.name

    @property
    def title(self) -> str:
        """How pages are headed: "Lina Orr", or "Lina Orr (chemist)"."""
        return f"{self.name} ({self.note})" if self.namesake else self.name


def populate(vocabulary: ShardWords, rng: random.Random, *, people: int, difficulty: Difficulty) -> list[WorldEntity]:
    """Everybody and everything, in the order of the ids."""
    made = list(_people(vocabulary, rng, people, difficulty))
    for kind, (share, least) in THINGS.items():
        made += _things(vocabulary, rng, kind, max(least, round(people * share)), difficulty)
    return [WorldEntity(f"{e.kind}-{n}", e.kind, e.name, e.note, e.namesake, e.pronoun) for n, e in enumerate(made)]


def _people(vocabulary: ShardWords, rng: random.Random, count: int, difficulty: Difficulty) -> Iterator[WorldEntity]:
    families: list[str] = []
    made = 0
    while made < count:
        if families and rng.random() < difficulty.noise:
            last = rng.choice(families)
        else:
            families.append(last := vocabulary.word("last"))
        name = vocabulary.person(last)
        shared = rng.random() < difficulty.namesakes / 2 and made + 1 < count
        notes = rng.sample(PROFESSIONS, 2)
        for note in notes[: 1 + shared]:
            yield WorldEntity("", "person", name, note, namesake=shared, pronoun=rng.choice(("she", "he")))
        made += 1 + shared


def _things(
    vocabulary: ShardWords, rng: random.Random, kind: str, count: int, difficulty: Difficulty
) -> Iterator[WorldEntity]:
    given: list[str] = []
    names: set[str] = set()
    while len(names) < count:
        old = rng.choice(given) if given and rng.random() < difficulty.noise / 2 else ""
        word = old or vocabulary.word(_WORD_KINDS.get(kind, kind))
        name = _name(kind, word, rng, varied=bool(old))
        if name in names:
            continue
        given.append(word)
        names.add(name)
        yield WorldEntity("", kind, name)


_WORD_KINDS = {
    "film": "work",
    "novel": "work",
    "event": "thing",
    "paper": "thing",
    "society": "thing",
    "school": "city",
}


def _name(kind: str, word: str, rng: random.Random, *, varied: bool) -> str:
    noun = rng.choice(NOUNS.get(kind, ("",)))
    match kind:
        case "city" | "country":
            return f"{rng.choice(PLACE_PREFIXES)} {word}" if varied else word
        case "org":
            return f"{word} {noun}"
        case "film":
            return f"The {word} {noun}"
        case "novel":
            first = rng.choice(("A", "My", "Every"))
            return f"{'An' if first == 'A' and word[0] in 'AEIOU' else first} {word} {noun}"
        case "event":
            return f"the {word} {noun}"
        case "paper":
            return f"On the {word} {noun}"
        case "society":
            return f"the {rng.choice(PLACE_PREFIXES)} {word} Society" if varied else f"the {word} Society"
        case _:
            return f"{rng.choice(PLACE_PREFIXES)} {word} University" if varied else f"{word} University"
