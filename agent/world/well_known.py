"""The names of the closed set: what is well known is the same in every world and split."""

from functools import cache
from typing import Final, Literal

Pronoun = Literal["she", "he", "it"]

PEOPLE: Final[tuple[tuple[str, str, Pronoun], ...]] = (
    ("Ada Quillfeather", "poet", "she"), ("Otto Yarrowby", "engineer", "he"), ("Iris Underhythe", "painter", "she"),
    ("Hugo Oxmeadow", "chemist", "he"), ("Ursula Quince", "historian", "she"), ("Emil Eaglesham", "pilot", "he"),
    ("Yvonne Ashgrove", "singer", "she"), ("Abel Inkster", "sculptor", "he"),
)  # fmt: skip
"""Name, profession, pronoun."""
COUNTRIES: Final = (
    ("Avaroth", "Ashkeep"), ("Quenlia", "Queensferry"), ("Xandor", "Xilvergate"), ("Yvernia", "Yarrowgate"),
    ("Oxmere", "Oakhaven"), ("Ulthea", "Underbridge"), ("Ethrun", "Eaglesea"), ("Iquara", "Ivoryquay"),
)  # fmt: skip
"""Country and capital."""
FILMS: Final = ("The Yellow Umbrella", "The Last Lighthouse", "The Iron Orchard", "The Open Attic", "The Empty Quay")
NOVELS: Final = ("Every Autumn Evening", "My Uncle Oswald", "A Quiet Year", "Every Island Child", "A Yard of Oats")
COMPANIES: Final = ("Quickwater Mills", "Ironoak Works", "Amberyard Shipping", "Elmwheel Motors", "Oystergate Foundry")


@cache
def well_known_words() -> frozenset[str]:
    """The words of these names: they are of no split."""
    people = (name for name, _, _ in PEOPLE)
    places = (place for pair in COUNTRIES for place in pair)
    return frozenset(word for name in (*people, *places, *FILMS, *NOVELS, *COMPANIES) for word in name.split())
