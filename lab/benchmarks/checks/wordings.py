"""Claims of the little world in several wordings, and what is turned into something else when one is corrupted."""

import random
import re
from collections.abc import Iterator, Mapping
from typing import Final

from agent.world.records import Lookup, Stated
from agent.world.relations import LISTINGS, RELATIONS

SWAPS: Final[Mapping[str, tuple[str, ...]]] = {
    "birthplace": ("died in {o}", "was buried in {o}", "opened a shop in {o}", "never left {o}"),
    "birth_year": ("died in {o}", "retired in {o}", "was married in {o}", "graduated in {o}"),
    "employer": ("founded {o}", "is the head of {o}", "has sued {o}", "was dismissed by {o}", "bought {o}"),
    "spouse": ("was taught by {o}", "divorced {o}", "is a sister of {o}", "is the mentor of {o}", "is engaged to {o}"),
    "mentor": ("is married to {o}", "taught {o}", "works for {o}", "is a brother of {o}", "exchanged rings with {o}"),
    "studied": ("taught at {o}", "works for {o}", "founded {o}", "was expelled from {o}"),
    "country": ("borders {o}", "is the capital of {o}", "is twinned with {o}", "was bombed by {o}"),
    "capital": ("borders {o}", "was named after {o}", "has {o} as its largest port", "is twinned with {o}"),
    "mayor": ("was founded by {o}", "is the birthplace of {o}", "has {o} as vice mayor", "expelled {o}"),
    "city_founded": ("was destroyed in {o}", "was flooded in {o}", "got its town hall in {o}"),
    "twin": ("lies in {o}", "is at war with {o}", "borders {o}", "is larger than {o}"),
    "founder": ("is now headed by {o}", "was sold by {o}", "was closed by {o}", "employs {o} as an accountant"),
    "head": ("was founded by {o}", "has dismissed {o}", "is owned by {o}", "employs {o} as a porter"),
    "headquarters": ("was founded in {o}", "has a factory in {o}", "has sold its shop in {o}", "is named after {o}"),
    "org_founded": ("was closed in {o}", "was sold in {o}", "moved in {o}", "lost a lawsuit in {o}"),
    "school_city": ("was named after {o}", "has moved away from {o}", "has a sports club in {o}"),
    "school_founded": ("was closed in {o}", "was renamed in {o}", "burned down in {o}"),
    "director": ("has {o} as lead actor", "has music composed by {o}", "was produced by {o}", "was panned by {o}"),
    "lead": ("was directed by {o}", "has {o} as composer", "was written by {o}", "was produced by {o}"),
    "composer": ("was directed by {o}", "has {o} as lead actor", "was edited by {o}", "was financed by {o}"),
    "film_released": ("was banned in {o}", "is set in {o}", "was restored in {o}", "was shot in {o}"),
    "setting": ("was shot in {o}", "had its premiere in {o}", "was banned in {o}", "was directed by {o}"),
    "author": ("was translated by {o}", "was published by {o}", "was illustrated by {o}", "is about {o}"),
    "publisher": ("was written by {o}", "was printed by {o}", "was rejected by {o}"),
    "novel_published": ("was filmed in {o}", "is set in {o}", "was banned in {o}", "was translated in {o}"),
    "host": ("was cancelled by {o}", "was won by {o}", "was invented in {o}", "will soon move to {o}"),
    "winner": ("was judged by {o}", "was founded by {o}", "was lost by {o}", "was opened by {o}"),
    "first_author": ("has {o} as last author", "was reviewed by {o}", "is dedicated to {o}", "was refuted by {o}"),
    "institute": ("was rejected by {o}", "criticises {o}", "was bought by {o}"),
    "data": ("criticises the {o} data set", "was written by {o}", "ignores the {o} data set"),
}  # fmt: skip
"""Relation → what is said instead of it: another relation of the world, or one that it does not have."""
LIST_SWAPS: Final[Mapping[str, tuple[str, ...]]] = {
    "natives": ("{o} died in {s}.", "{o} is the mayor of {s}.", "{o} studied in {s}."),
    "members": ("{o} was expelled from {s}.", "{o} founded {s}.", "{o} sued {s}."),
    "films_by": ("{o} was produced by {s}.", "{o} was written by {s}.", "{s} has the lead in {o}."),
    "films_set": ("{o} was shot in {s}.", "{o} had its premiere in {s}.", "{o} was banned in {s}."),
    "alumni": ("{o} taught at {s}.", "{o} was expelled from {s}.", "{o} works for {s}."),
    "novels_by": ("{o} was published by {s}.", "{o} was translated by {s}.", "{o} is about {s}."),
}
_DETAIL: Final = re.compile(r"two dogs|school classes|back room|small budget|old barracks|in the hills")
"""Wordings that add something of their own, which no other wording of the same fact supports."""
_AUXILIARY: Final = re.compile(r"^(is|was|has been|has|had)\b")
_WITH_NOT: Final[Mapping[str, str]] = {
    "comes": "does not come", "hails": "does not hail", "belongs": "does not belong", "lies": "does not lie",
    "holds": "does not hold", "stars": "does not star", "uses": "does not use", "sits": "does not sit",
    "married": "never married", "studied": "never studied", "graduated": "never graduated", "learned": "never learned",
    "went": "never went", "unfolds": "does not unfold", "shows": "does not show", "gives": "does not give",
}  # fmt: skip


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def claim_wordings(lookup: Lookup, value: str, stated: Stated | None) -> Iterator[str]:
    """The claim that a look-up found `value`, in every wording that the world has for it."""
    if lookup.relation in LISTINGS:
        yield from _listed(lookup.relation, lookup.subject, value)
        return
    relation = RELATIONS[lookup.relation]
    names = {
        "s": lookup.subject,
        "o": value,
        "since": stated.since if stated else "",
        "p": "its",
        "he": "it",
        "him": "it",
    }
    if lookup.when in ("in", "before") and stated and stated.until:
        names["until"] = stated.until
        for text in relation.past:
            if "{s}" in text:
                yield capital(text.format(**names))
            else:
                yield _with_subject(text, relation.noun).format(**names)
        return
    if lookup.when == "since":
        names |= {"o": lookup.what, "since": value}
    elif lookup.when:
        return
    else:
        yield f"The {relation.noun} of {lookup.subject} is {value}."
    for phrase in (*relation.phrases, *relation.phrases_far) if not lookup.when else ():
        yield capital(f"{phrase.format(s=lookup.subject)} is {value}.")
    for sentence in (*relation.stated, *relation.stated_far):
        if (
            _DETAIL.search(sentence)
            or ("{since}" in sentence and not names["since"])
            or ("{since}" not in sentence and lookup.when)
        ):
            continue
        yield capital(f"{lookup.subject} {sentence.format(**names)}.")


def _with_subject(text: str, noun: str) -> str:
    for short in (f"the {noun} was", f"the {noun} were"):
        text = text.replace(short, short.replace(noun, noun + " of {s}"))
    return text


def _listed(relation: str, holder: str, member: str) -> Iterator[str]:
    listing = LISTINGS[relation]
    yield f"{capital(member)} is among the {listing.noun} {holder}."
    yield f"The {listing.noun} {holder} include {member}."
    for clause in listing.clause:
        yield f"{capital(member)} {clause.format(s=holder)}."


def swapped(lookup: Lookup, value: str, rng: random.Random) -> str:
    """The same two names or years in another relation."""
    if lookup.relation in LISTINGS:
        text = rng.choice(LIST_SWAPS[lookup.relation])
        return capital(text.format(s=lookup.subject, o=value))
    return capital(f"{lookup.subject} {rng.choice(SWAPS[lookup.relation]).format(o=value)}.")


def negated(claim: str, subject: str, rng: random.Random) -> str:
    """The claim with a "not" or a "never" in its verb, or taken back as a whole."""
    rest = claim.removeprefix(capital(subject)).strip()
    plain = f"It is not true that {claim if claim.startswith(capital(subject)) else claim[0].lower() + claim[1:]}"
    if len(rest) == len(claim):
        made = re.sub(r" is (?=[^ ]+(?: [^ ]+)*\.$)", " is not ", claim, count=1) if " is " in claim else plain
        return made if made != claim and rng.random() < 0.8 else plain
    first, _, tail = rest.partition(" ")
    if match := _AUXILIARY.match(rest):
        verb = match[1]
        put = {"has been": "has never been", "has": "does not have", "had": "never had"}.get(verb, f"{verb} not")
        if verb == "has" and re.match(r"has \w+ed\b|has (?:had|kept|lived|earned)\b", rest):
            put = "has not"
        return f"{capital(subject)} {put}{rest[match.end() :]}"
    if first in _WITH_NOT:
        return f"{capital(subject)} {_WITH_NOT[first]} {tail}"
    return plain
