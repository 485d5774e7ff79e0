"""The oracle's queries: for every look-up a first query, and others for when that finds nothing. No protocol's syntax.

The first query is the standard one with a few words of how the fact is worded elsewhere: BM25 finds the passage in one
query then, which matters where a protocol has one query a round (top 5 of all sources: .99, the standard query: .95).
"""

from typing import Final

from agent.world.records import Lookup

_WORDS: Final[dict[str, str]] = {
    "birthplace": "born home",
    "birth_year": "born since",
    "employer": "works post loses",
    "mayor": "hall wins",
    "headquarters": "company gone took",
    "head": "manages vote",
    "city_founded": "since dates",
    "org_founded": "since back",
    "country": "city town belongs",
    "founder": "founded set started",
    "lead": "part",
    "composer": "score",
    "director": "film",
    "winner": "wins medal",
    "host": "flags welcomes",
    "novel_published": "appeared",
    "author": "written",
    "first_author": "wrote",
    "institute": "written",
    "data": "measurements",
    "studied": "degree",
    "film_released": "reached",
}


def first_query(lookup: Lookup) -> str:
    """The standard query and the words of other wordings."""
    return f"{lookup.query} {_WORDS.get(lookup.relation, '')}".rstrip()


def three_queries(lookup: Lookup) -> tuple[str, ...]:
    """Up to three different queries."""
    return tuple(dict.fromkeys((first_query(lookup), lookup.query, lookup.queries[-1])))


def other_queries(lookup: Lookup, *, tried: tuple[str, ...]) -> tuple[str, ...]:
    """Queries that were not tried yet, the best first; the bare subject is the last resort."""
    others = (lookup.queries[-1], lookup.query, *lookup.queries[1:-1], lookup.subject)
    return tuple(query for query in dict.fromkeys(others) if query not in tried)


def filled(lookup: Lookup, subject: str) -> str:
    """The first query with another subject, for example a reference to what an earlier line finds."""
    return first_query(lookup.model_copy(update={"subject": subject}))
