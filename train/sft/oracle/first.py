"""The oracle: what a policy should write for a question of the little world, turn by turn, in any built-in protocol.

It reads the gold plan and the passages that were really shown, so its citations are right and its context is the one
that the loop makes. It is the teacher of the cold start, never a policy that anyone is served.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.evidence import Passage
from agent.protocols import Role, TextProtocol
from agent.world.records import Lookup, Question


@dataclass(frozen=True)
class Oracle:
    """The right turns for one question under one protocol."""

    question: Question
    protocol: TextProtocol

    def searches(self, number: int, shown: Sequence[Passage]) -> bool:
        """Whether turn `number` ends in a search; the last one answers."""
        return number < len(self.question.plan)

    def turn(self, number: int, shown: Sequence[Passage]) -> str:
        """Text of turn `number` (from 0), given every passage that was shown so far, the newest last."""
        parts = [] if number == 0 else [self._block("merge", self._merge(number - 1, shown))]
        if number < len(self.question.plan):
            parts.append(self._block("thought", self._thought(number)))
            parts.append(self._block("search", self._search(number)))
        else:
            if "evidence" in self.protocol.tags:
                parts.append(self._block("evidence", self._evidence(shown)))
            parts.append(self._block("answer", self.question.answers[0]))
        return "\n".join(parts)

    def _block(self, role: Role, text: str) -> str:
        return f"{self.protocol.opening(role)}{text}{self.protocol.closing(role)}"

    def _thought(self, number: int) -> str:
        if number == 0 and self._later(0):
            return f"First {_wanted(self.question.plan[0])}, {self._later(0)}."
        start = "I need" if number == 0 else "Now"
        parts = [_wanted(self.question.plan[number]), self._later(number)]
        return f"{start} {', '.join(part for part in parts if part)}."

    def _later(self, number: int) -> str:
        """What comes after round `number`: "then the birthplace", "then the birth years, then the earlier one"."""
        question = self.question
        later = [_nouns(lookups) for lookups in question.plan[number + 1 :]]
        if question.asks:
            later.append(f"the {question.asks} one")
        if question.type == "intersection":
            later.append("who is in both")
        return ", ".join(f"then {what}" for what in later)

    def queries(self, number: int) -> list[tuple[str, str]]:
        """Query and source of each node in round `number`."""
        lookups = self.question.plan[number]
        if self.protocol.sources:
            return [(lookup.query, source) for lookup in lookups for source in lookup.sources]
        queries = [lookup.query for lookup in lookups]
        if len(lookups) == 1:
            queries.append(lookups[0].rephrased)
        return [(query, "all") for query in queries]

    def _search(self, number: int) -> str:
        queries = self.queries(number)
        if self.protocol.plan == "queries":
            return f"{self.protocol.separator} ".join(query for query, _ in queries)
        lines = [f"{chr(ord('A') + place)}: {query} ({source})" for place, (query, source) in enumerate(queries)]
        return "\n" + "\n".join(lines) + "\n"

    def _merge(self, number: int, shown: Sequence[Passage]) -> str:
        question, lookups = self.question, self.question.plan[number]
        if question.type == "intersection":
            lists = " and ".join(f"the {lookup.query} [{_cited(lookup, shown)}]" for lookup in lookups)
            return f"Both among {lists}: {question.answers[-1]}. Nothing is missing."
        said = [f"{_said(lookup)} [{_cited(lookup, shown)}]." for lookup in lookups]
        if number + 1 < len(question.plan):
            return " ".join([*said, f"Missing: {self._later(number).removeprefix('then ')}."])
        return " ".join([*said, *self._conclusion(lookups), "Nothing is missing."])

    def _conclusion(self, lookups: Sequence[Lookup]) -> list[str]:
        question = self.question
        if question.asks:
            one, two = (lookup.values[0] for lookup in lookups)
            order = "before" if int(one) < int(two) else "after"
            return [f"{one} is {order} {two}, so the {question.asks} one is {question.answers[-1]}."]
        return []

    def _evidence(self, shown: Sequence[Passage]) -> str:
        lookups = [lookup for lookups in self.question.plan for lookup in lookups]
        return "\n" + "".join(f"- {self._claim(lookup)}. [{_cited(lookup, shown)}]\n" for lookup in lookups)

    def _claim(self, lookup: Lookup) -> str:
        return f"{self.question.answers[-1]} is among the {lookup.query}" if lookup.is_list else _said(lookup)


def _wanted(lookups: Sequence[Lookup]) -> str:
    return " and ".join(f"the {lookup.query}" for lookup in lookups)


def _nouns(lookups: Sequence[Lookup]) -> str:
    """What later rounds look for, while their subjects are still unknown: "the birthplace", "the birth years"."""
    noun = lookups[0].noun
    return f"the {noun}" if len(lookups) == 1 else f"the {noun}s"


def _said(lookup: Lookup) -> str:
    return f"The {lookup.query} is {lookup.values[0]}"


def _cited(lookup: Lookup, shown: Sequence[Passage]) -> int:
    """Number of the passage that states it; the newest one, should it have been shown twice."""
    numbers = [passage.number for passage in shown if passage.id == lookup.gold]
    if not numbers:
        raise LookupError(f"the passage that states the {lookup.query} was not shown")
    return numbers[-1]
