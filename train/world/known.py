"""Well-known facts: a closed set that is the same in every world and split, so that a policy can know it by heart."""

import random
from functools import cache

from agent.world.difficulty import Difficulty
from agent.world.scope import COMPANIES, COUNTRIES, FILMS, NOVELS, PEOPLE
from train.world.pages import PageDraft, PageWriter
from train.world.population import WorldEntity
from train.world.universe import Universe, WorldFact


@cache
def well_known() -> Universe:
    """The closed set as a universe of its own."""
    entities = [
        WorldEntity(f"known-{number}", "person", name, note, pronoun=pronoun)
        for number, (name, note, pronoun) in enumerate(PEOPLE)
    ]
    entities += [
        WorldEntity(f"known-{number}", kind, name) for number, (kind, name) in enumerate(_things(), len(PEOPLE))
    ]
    universe = Universe({entity.id: entity for entity in entities})
    keys = {entity.name: entity.id for entity in entities}
    for subject, relation, value in _facts():
        universe.facts[keys[subject], relation] = WorldFact(keys[subject], relation, keys.get(value, value))
    return universe


def _things() -> list[tuple[str, str]]:
    pairs = [("country", country) for country, _ in COUNTRIES] + [("city", city) for _, city in COUNTRIES]
    tables = (("film", FILMS), ("novel", NOVELS), ("org", COMPANIES))
    return pairs + [(kind, name) for kind, names in tables for name in names]


def _facts() -> list[tuple[str, str, str]]:
    people = [name for name, _, _ in PEOPLE]
    facts: list[tuple[str, str, str]] = []
    for place, (country, city) in enumerate(COUNTRIES):
        facts += [
            (country, "capital", city),
            (city, "country", country),
            (city, "city_founded", str(1112 + 83 * place)),
        ]
    for place, name in enumerate(people):
        facts += [(name, "birthplace", COUNTRIES[(place * 3 + 1) % 8][1]), (name, "birth_year", str(1931 + 7 * place))]
    for place, (film, novel, company) in enumerate(zip(FILMS, NOVELS, COMPANIES, strict=True)):
        facts += [(film, "director", people[place]), (film, "film_released", str(1962 + 9 * place))]
        facts += [(novel, "author", people[(place + 3) % 8]), (novel, "novel_published", str(1966 + 11 * place))]
        facts += [(company, "founder", people[(place + 5) % 8]), (company, "org_founded", str(1903 + 17 * place))]
    return facts


@cache
def well_known_drafts() -> tuple[PageDraft, ...]:
    """Its pages: a world holds them once, word for word the same everywhere."""
    difficulty = Difficulty(noise=0, paraphrase=0.3)
    return tuple(PageWriter(well_known(), random.Random("well known"), difficulty).write())
