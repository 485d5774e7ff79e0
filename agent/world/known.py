"""Well-known facts: a closed set that is the same in every world and split, so that a policy can know it by heart."""

import random
from functools import cache
from typing import Final

from agent.world.knobs import Knobs
from agent.world.pages import Draft, PageWriter
from agent.world.population import Entity, Pronoun
from agent.world.universe import Fact, Universe

_PEOPLE: Final[tuple[tuple[str, str, Pronoun], ...]] = (
    ("Ada Quillfeather", "poet", "she"), ("Otto Yarrowby", "engineer", "he"), ("Iris Underhythe", "painter", "she"),
    ("Hugo Oxmeadow", "chemist", "he"), ("Ursula Quince", "historian", "she"), ("Emil Eaglesham", "pilot", "he"),
    ("Yvonne Ashgrove", "singer", "she"), ("Abel Inkster", "sculptor", "he"),
)  # fmt: skip
_COUNTRIES: Final = (
    ("Avaroth", "Ashkeep"), ("Quenlia", "Queensferry"), ("Xandor", "Xilvergate"), ("Yvernia", "Yarrowgate"),
    ("Oxmere", "Oakhaven"), ("Ulthea", "Underbridge"), ("Ethrun", "Eaglesea"), ("Iquara", "Ivoryquay"),
)  # fmt: skip
_FILMS: Final = ("The Yellow Umbrella", "The Last Lighthouse", "The Iron Orchard", "The Open Attic", "The Empty Quay")
_NOVELS: Final = ("Every Autumn Evening", "My Uncle Oswald", "A Quiet Year", "Every Island Child", "A Yard of Oats")
_COMPANIES: Final = ("Quickwater Mills", "Ironoak Works", "Amberyard Shipping", "Elmwheel Motors", "Oystergate Foundry")


@cache
def well_known() -> Universe:
    """The closed set as a universe of its own."""
    entities = [
        Entity(f"known-{number}", "person", name, note, pronoun=pronoun)
        for number, (name, note, pronoun) in enumerate(_PEOPLE)
    ]
    entities += [Entity(f"known-{number}", kind, name) for number, (kind, name) in enumerate(_things(), len(_PEOPLE))]
    universe = Universe({entity.id: entity for entity in entities})
    keys = {entity.name: entity.id for entity in entities}
    for subject, relation, value in _facts():
        universe.facts[keys[subject], relation] = Fact(keys[subject], relation, keys.get(value, value))
    return universe


def _things() -> list[tuple[str, str]]:
    pairs = [("country", country) for country, _ in _COUNTRIES] + [("city", city) for _, city in _COUNTRIES]
    tables = (("film", _FILMS), ("novel", _NOVELS), ("org", _COMPANIES))
    return pairs + [(kind, name) for kind, names in tables for name in names]


def _facts() -> list[tuple[str, str, str]]:
    people = [name for name, _, _ in _PEOPLE]
    facts: list[tuple[str, str, str]] = []
    for place, (country, city) in enumerate(_COUNTRIES):
        facts += [
            (country, "capital", city),
            (city, "country", country),
            (city, "city_founded", str(1112 + 83 * place)),
        ]
    for place, name in enumerate(people):
        facts += [(name, "birthplace", _COUNTRIES[(place * 3 + 1) % 8][1]), (name, "birth_year", str(1931 + 7 * place))]
    for place, (film, novel, company) in enumerate(zip(_FILMS, _NOVELS, _COMPANIES, strict=True)):
        facts += [(film, "director", people[place]), (film, "film_released", str(1962 + 9 * place))]
        facts += [(novel, "author", people[(place + 3) % 8]), (novel, "novel_published", str(1966 + 11 * place))]
        facts += [(company, "founder", people[(place + 5) % 8]), (company, "org_founded", str(1903 + 17 * place))]
    return facts


@cache
def well_known_drafts() -> tuple[Draft, ...]:
    """Its pages: a world holds them once, word for word the same everywhere."""
    knobs = Knobs(noise=0, paraphrase=0.3)
    return tuple(PageWriter(well_known(), random.Random("well known"), knobs).write())


@cache
def well_known_words() -> frozenset[str]:
    """The words of its names: they are of no split."""
    return frozenset(word for entity in well_known().entities.values() for word in entity.name.split())
