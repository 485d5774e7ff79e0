"""What can be known in the little world: every relation and listing, by name. Their wordings are in `wordings`."""

from agent.world.wordings.base import Listing, RelationWording
from agent.world.wordings.people_and_places import PEOPLE, PLACES
from agent.world.wordings.works_and_lists import LISTS, WORKS

PROFESSIONS = (
    "chemist", "painter", "pilot", "singer", "lawyer", "sculptor", "farmer", "surgeon", "poet", "engineer",
    "historian", "baker", "dancer", "economist", "geologist", "librarian", "sailor", "teacher", "translator", "weaver",
)  # fmt: skip

RELATIONS: dict[str, RelationWording] = {relation.name: relation for relation in (*PEOPLE, *PLACES, *WORKS)}
LISTINGS: dict[str, Listing] = {listing.name: listing for listing in LISTS}


def noun_of(name: str) -> str:
    """How plans call a relation or a listing: "birth year", "people born in"."""
    return RELATIONS[name].noun if name in RELATIONS else LISTINGS[name].noun


def sources_of(name: str) -> tuple[str, ...]:
    """Where a relation or a listing can be, the most current source last."""
    return RELATIONS[name].sources if name in RELATIONS else (LISTINGS[name].source,)
