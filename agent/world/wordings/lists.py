"""Wordings of what holds of many: listings."""

from typing import Final

from agent.world.wordings.base import Listing

LISTS: Final = (
    Listing(
        name="natives", subject="city", member="person", source="web", noun="people born in",
        rephrased="natives of {s}",
        stated=("People born in {s} are {o}.", "The list of people born in {s}: {o}.", "{s} is the birthplace of {o}.",
              "Natives of {s} include, in no order, {o}; no others are known."),
        clause=("was born in {s}", "comes from {s}"),
        counts=("How many people were born in {s}, by its list?", "How many natives does the list of {s} name?"),
    ),
    Listing(
        name="members", subject="society", member="person", source="kg", noun="members of",
        rephrased="who belongs to {s}",
        stated=("The members of {s} are {o}.",),
        clause=("is a member of {s}", "belongs to {s}"),
        counts=("How many members does {s} have?", "How many people belong to {s}?"),
    ),
    Listing(
        name="films_by", subject="person", member="film", source="web", noun="films by",
        rephrased="what did {s} direct",
        stated=("The films by {s} are {o}.", "All films by {s}: {o}.", "{s} has directed {o}, and nothing else.",
              "The complete list of what {s} has directed reads: {o}."),
        clause=("was directed by {s}", "was made by {s}"),
        counts=("How many films did {s} direct?", "How many films by {s} are there?"),
    ),
    Listing(
        name="films_set", subject="city", member="film", source="kg", noun="films set in",
        rephrased="{s} as setting",
        stated=("Films set in {s}: {o}.",),
        clause=("is set in {s}", "takes place in {s}"),
        counts=("How many films are set in {s}?", "How many films take place in {s}?"),
    ),
    Listing(
        name="alumni", subject="school", member="person", source="kg", noun="graduates of",
        rephrased="who graduated from {s}",
        stated=("The graduates of {s} are {o}.",),
        clause=("graduated from {s}", "studied at {s}"),
        counts=("How many graduates does {s} name?", "How many people graduated from {s}?"),
    ),
    Listing(
        name="novels_by", subject="person", member="novel", source="web", noun="novels by",
        rephrased="what novels did {s} write",
        stated=(),
        clause=("was written by {s}",),
        counts=("How many novels did {s} write?", "How many novels by {s} are there?"),
        scattered="author",
    ),
)  # fmt: skip
