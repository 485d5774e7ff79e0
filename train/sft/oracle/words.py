"""The oracle's sentences: what is wanted, what was found, what is missing, what follows. Regular on purpose.

A policy of a few million parameters learns them: whatever a sentence needs is in the context already, to be copied.
"""

from collections.abc import Mapping, Sequence

from agent.world.records import Lookup, Question
from train.sft.oracle.findings import LookupFinding


def wanted(lookups: Sequence[Lookup]) -> str:
    return " and ".join(_thing(lookup) for lookup in lookups)


def _thing(lookup: Lookup) -> str:
    if lookup.when == "since":
        return f"since when {lookup.what} is the {lookup.noun} of {lookup.subject}"
    return f"the {lookup.query}"


def nouns(lookups: Sequence[Lookup]) -> str:
    """What later rounds look for, while their subjects are still unknown: "the birthplace", "the birth years"."""
    noun = lookups[0].noun
    if lookups[0].is_list:
        return f"the {noun} it"
    return f"the {noun}" if len(lookups) == 1 else f"the {noun}s"


def later(question: Question, stage: int) -> str:
    """What comes after a stage of the plan: "then the birthplace", "then the birth years, then the earlier one"."""
    parts = [nouns(lookups) for lookups in question.plan[stage + 1 :]]
    if question.asks:
        parts.append(f"the {question.asks} one")
    if question.type == "intersection":
        parts.append("who is in both")
    if question.type == "count":
        parts.append("how many")
    return ", ".join(f"then {what}" for what in parts)


def need(question: Question, lookups: Sequence[Lookup], stage: int, *, start: str) -> str:
    """What is looked for now, and what after that."""
    after = later(question, stage)
    if start == "I need" and after:
        start = "First"
    return f"{start} {', '.join(part for part in (wanted(lookups), after) if part)}."


def said(finding: LookupFinding, question: Question, *, cited: bool) -> list[str]:
    """The sentences of one finding."""
    cites = f" {finding.cites}" if cited else ""
    lookup = finding.lookup
    if lookup.is_list and question.type == "intersection":
        return [f"The {lookup.query} are listed{cites}."]
    if lookup.is_list and question.type == "count":
        return [_numbered(finding, lookup.values, cited=cited)]
    weighed = finding.weighed if cited else _uncited(finding.weighed)
    return [*([weighed] if weighed else []), f"{finding.said}{cites}."]


def concluded(question: Question, findings: Mapping[Lookup, LookupFinding], *, cited: bool) -> list[str]:
    """What follows from everything that was found."""
    last = question.plan[-1]
    if question.asks:
        # One small step after the other: the years, their digits up to those that differ, the order, what is wanted.
        one, two = last
        early, late = sorted(last, key=lambda lookup: int(lookup.values[0]))
        years = f"{one.values[0]} and {two.values[0]}: {_digits(one.values[0], two.values[0])}, so the "
        years += f"{'first' if early is one else 'second'} is earlier."
        order = f"{early.subject} is before {late.subject}, so the {question.asks} one is {question.answers[-1]}."
        return [years, order]
    if question.type == "intersection":
        shorter, longer = sorted((findings[lookup] for lookup in last), key=lambda found: len(found.lookup.values))
        members = longer.in_order()
        walked = _gone_through(shorter, members, cited=cited)
        return [_numbered(longer, members, cited=cited), walked, f"In both: {question.answers[-1]}."]
    if question.type == "count":
        return [f"That is {len(findings[last[0]].lookup.values)}."]
    return []


def _digits(one: str, two: str) -> str:
    """Two years of four digits, digit by digit, up to those that differ: "1 1, 9 9, 8 3"."""
    pairs = list(zip(one, two, strict=True))
    differing = next(place for place, (ours, theirs) in enumerate(pairs) if ours != theirs)
    return ", ".join(f"{ours} {theirs}" for ours, theirs in pairs[: differing + 1])


def _numbered(finding: LookupFinding, members: Sequence[str], *, cited: bool) -> str:
    """A list with the number of each member behind it, where the same name later on finds it."""
    listed = ", ".join(f"{member} {number}" for number, member in enumerate(members, start=1))
    return f"The {finding.lookup.query} are {listed}{f' {finding.cites}' if cited else ''}."


def _gone_through(finding: LookupFinding, other: Sequence[str], *, cited: bool) -> str:
    """Each member of a list in its order, with its number in the other list, up to the first that has one.

    One small question after the other: to see a list's common member at a glance takes far longer to learn.
    """
    judged: list[str] = []
    for member in finding.in_order():
        judged.append(f"{member} {other.index(member) + 1 if member in other else 'no'}")
        if member in other:
            break
    return f"Of the {finding.lookup.query}{f' {finding.cites}' if cited else ''}: {', '.join(judged)}."


def claim(finding: LookupFinding, question: Question) -> str:
    if finding.lookup.is_list and question.type == "intersection":
        return f"{question.answers[-1]} is among the {finding.lookup.query}"
    return finding.said


def not_found(lookup: Lookup) -> str:
    return f"The {lookup.query} {'are' if lookup.is_list else 'is'} not found."


def _uncited(text: str) -> str:
    """The same without the numbers of passages, for protocols that show none."""
    parts = [part for part in text.replace("[", " [").split() if not part.startswith("[")]
    joined = " ".join(parts).rstrip(".,")
    return f"{joined}." if joined else ""
