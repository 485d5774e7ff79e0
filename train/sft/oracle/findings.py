"""What the observed passages say about a look-up, and how that is put into words. Nothing is guessed here."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.evidence import Passage
from agent.world.records import Document, Lookup, Stated
from agent.world.relations import RELATIONS

Documents = Callable[[str], Document]
"""Passage id → the document, with what it states."""


class NotShown(LookupError):
    """The passages mislead: they give a value that is not the current one. No reader could know better from them."""


@dataclass(frozen=True)
class LookupFinding:
    """What was found out about one look-up."""

    lookup: Lookup
    passages: tuple[Passage, ...]
    """Those that carry it, one citation each; none where it is known to be unknown."""
    weighed: str = ""
    """What was held against each other: "2024 Muntex Foundry [1], 2025 Wirsium Motors [3].", or nothing."""

    @property
    def value(self) -> str:
        return self.lookup.values[0]

    @property
    def cites(self) -> str:
        return "".join(f"[{passage.number}]" for passage in self.passages)

    @property
    def said(self) -> str:
        """One sentence without its end, as a merge or a claim says it."""
        lookup = self.lookup
        if lookup.is_list:
            return f"The {lookup.query} are {', '.join(lookup.values)}"
        if lookup.when == "since":
            return f"The {lookup.noun} of {lookup.subject} is {lookup.what} since {self.value}"
        return f"The {lookup.query} is {self.value}"

    def in_order(self) -> list[str]:
        """The members of a list as the passages give them, one after the other."""
        text = "\n".join(passage.text for passage in self.passages)
        return sorted(self.lookup.values, key=text.find)

    def sentences(self) -> list[str]:
        """The sentences of the passages that carry it, in their own words."""
        lookup = self.lookup
        values = lookup.values if lookup.is_list else (self.value,)
        found = [_sentence(passage, values) for passage in self.passages]
        if lookup.when in ("since", "before") and lookup.what not in " ".join(found):
            found += [_sentence(passage, (lookup.what,)) for passage in self.passages]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class _Said:
    passage: Passage
    stated: Stated


def find(lookup: Lookup, observed: Sequence[Passage], documents: Documents) -> LookupFinding | None:
    """What the observed passages say about a look-up; None where they say nothing of it.

    Args:
        lookup: with the right values.
        observed: passages with their numbers, the newest last.
        documents: gives what each passage states.

    Raises:
        NotShown: what they say is wrong.
    """
    said = [
        _Said(passage, stated)
        for passage in observed
        for stated in documents(passage.id).states
        if (stated.subject, stated.relation) == (lookup.subject, lookup.relation) and not stated.doubtful
    ]
    if lookup.when:
        return _at(lookup, said)
    if lookup.is_list:
        return _listed(lookup, said)
    if RELATIONS[lookup.relation].changes:
        return _newest(lookup, said)
    if not said:
        return None
    if said[0].stated.values != lookup.values:
        raise NotShown(lookup.query)
    return LookupFinding(lookup, (said[0].passage,))


def settled(lookup: Lookup, observed: Sequence[Passage], documents: Documents) -> bool:
    """Whether the page with the whole history was observed, so that no passage says what it does not say of a year."""
    return lookup.when == "in" and any(
        (stated.subject, stated.relation) == (lookup.subject, lookup.relation) and not stated.doubtful
        for passage in observed
        if passage.source == "web"
        for stated in documents(passage.id).states
    )


def history(lookup: Lookup, observed: Sequence[Passage], documents: Documents) -> str:
    """Every span that the page with the history gives: "2017- Welvax Labs, 2005-2017 Saskent Shipping [1]."."""
    for passage in observed:
        states = [
            stated
            for stated in documents(passage.id).states
            if (stated.subject, stated.relation) == (lookup.subject, lookup.relation) and not stated.doubtful
        ]
        if passage.source == "web" and states:
            return _spans(passage, states)
    return ""


def _newest(lookup: Lookup, said: Sequence[_Said]) -> LookupFinding | None:
    """Of what changes, every passage's word with its year; the newest holds."""
    last = {one.passage.id: one for one in said}  # a page gives its spans in order: the last is the one that it knows
    if not last:
        return None
    newest = max(last.values(), key=lambda one: one.passage.date)
    if newest.stated.values != lookup.values:
        raise NotShown(lookup.query)
    weighed = ", ".join(f"{o.passage.date[:4]} {o.stated.values[0]} [{o.passage.number}]" for o in last.values())
    return LookupFinding(lookup, (newest.passage,), f"{weighed}.")


def _listed(lookup: Lookup, said: Sequence[_Said]) -> LookupFinding | None:
    whole = next((one for one in said if one.stated.values == lookup.values), None)
    if whole:
        return LookupFinding(lookup, (whole.passage,))
    each: dict[str, Passage] = {}
    for one in said:
        for value in one.stated.values:
            each.setdefault(value, one.passage)
    if not each:
        return None
    if set(each) != set(lookup.values):
        raise NotShown(lookup.query)
    passages = tuple(sorted(dict.fromkeys(each.values()), key=lambda p: p.number))
    order = sorted(each, key=lambda value: each[value].number)
    return LookupFinding(lookup.model_copy(update={"values": tuple(order)}), passages)


def _at(lookup: Lookup, said: Sequence[_Said]) -> LookupFinding | None:
    for one in said:
        if not one.stated.since or not _proves(one.stated, lookup):
            continue
        beside = [other.stated for other in said if other.passage.id == one.passage.id]
        whole = one.passage.source == "web" and lookup.when != "since"
        return LookupFinding(lookup, (one.passage,), _spans(one.passage, beside) if whole else "")
    return None


def _proves(stated: Stated, lookup: Lookup) -> bool:
    match lookup.when:
        case "in":
            return bool(lookup.values) and int(stated.since) <= int(lookup.what) < int(stated.until or 2025)
        case "before":
            return lookup.what in stated.values and stated.follows == lookup.values[0]
        case _:
            return lookup.what in stated.values and stated.since == lookup.values[0]


def _spans(passage: Passage, states: Sequence[Stated]) -> str:
    """The spans of a page in the order of its text."""
    order = sorted(states, key=lambda stated: passage.text.find(stated.values[0]))
    spans = ", ".join(f"{s.since}-{s.until} {s.values[0]}" for s in order)
    return f"{spans} [{passage.number}]."


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def _sentence(passage: Passage, values: Sequence[str]) -> str:
    """The sentence of a passage that has the values; a triple is one whole."""
    if passage.source == "kg":
        return passage.text
    sentences = _SENTENCE.split(passage.text)
    whole = [sentence for sentence in sentences if all(value in sentence for value in values)]
    some = [sentence for sentence in sentences if any(value in sentence for value in values)]
    return (whole or some or sentences)[0]
