"""An expert with habits, good ones and bad ones: it shows each of them with a probability of its own.

It makes the start of a study about reinforcement learning, in which the behaviour under test is neither certain nor
absent. Several habits can come together; what it says is true of what it observed.
"""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from agent.protocols import TextProtocol
from agent.world import World
from agent.world.records import Lookup, Question
from train.common.habit import Habit, Noise
from train.sft.oracle.noisy import NoisyExpert, elsewhere, noises
from train.sft.oracle.plans import Plans
from train.sft.oracle.teacher import Teacher, TeacherTurn

_OF_QUESTIONS: Final[tuple[Noise, ...]] = ("few_rounds", "one_source", "known")
"""They change what the question is taken for."""


def possible_habits(question: Question, protocol: TextProtocol) -> list[Habit]:
    """Those that can show in a question under a protocol."""
    found: list[Habit] = list(noises(question, protocol))
    if question.well_known or question.unanswerable:
        return found
    if protocol.plan == "queries":
        found.append("two_queries")
    if "merge" in protocol.tags:
        found.append("bare_merge")
    if "evidence" in protocol.tags:
        found.append("poor_evidence")
    if "reflect" in protocol.tags:
        found.append("unsearched")
    if protocol.plan in ("query", "graph"):
        found.append("repeats")
    return found


def drawn_habits(rng: random.Random, habits: Mapping[Habit, float], possible: Sequence[Habit]) -> tuple[Habit, ...]:
    """Each of those that are possible, with its probability."""
    return tuple(habit for habit, share in habits.items() if rng.random() < share and habit in possible)


class HabitTeacher(Teacher):
    """Turns that are right but for some habits."""

    def __init__(self, question: Question, protocol: TextProtocol, world: World, habits: Collection[Habit]) -> None:
        super().__init__(question, protocol, world.document)
        self._plans = _HabitPlans(protocol, habits)
        self._habits = habits
        self._last = ""
        """The last search as it was written."""

    def turn(self) -> TeacherTurn:
        if "unsearched" in self._habits and not self._rounds:
            unknown = self._question.model_copy(update={"unanswerable": True, "answers": ()})
            (lookup, *_), self._question = self._question.plan[0], unknown
            return self._answering([self._block("thought", f"I do not know the {lookup.query}."), *self._unsure()])
        if "repeats" in self._habits and self._last and self._rounds < self._protocol.max_rounds:
            search, self._last = self._last, ""
            self._habits = [habit for habit in self._habits if habit != "repeats"]
            self._rounds += 1
            return TeacherTurn("\n".join([*self._looking_back(), search]), "search")
        return super().turn()

    def _unsure(self) -> list[str]:
        return [self._block("reflect", "It is not certain.")] if "reflect" in self._protocol.tags else []

    def _searching(self, before: list[str]) -> TeacherTurn:
        turn = super()._searching(before)
        self._last = turn.text[turn.text.rindex(self._protocol.opening("search")) :]
        return turn

    def _said(self) -> list[str]:
        if "bare_merge" not in self._habits:
            return super()._said()
        found = [self._found[lookup] for lookup in self._batch if lookup in self._found]
        return [f"The {finding.lookup.query} can be read {finding.cites}." for finding in found]

    def _evidence(self) -> list[str]:
        if "poor_evidence" not in self._habits or not self._found:
            return super()._evidence()
        about = dict.fromkeys(finding.lookup.subject for finding in self._found.values())
        return [self._block("evidence", "\n" + "".join(f"Something is said of {subject}.\n" for subject in about))]

    def _concluded(self) -> list[str]:
        return [] if "bare_merge" in self._habits else super()._concluded()


class _HabitPlans(Plans):
    """Plans whose queries are fewer, vaguer, or elsewhere."""

    def __init__(self, protocol: TextProtocol, habits: Collection[Habit]) -> None:
        super().__init__(protocol)
        self._habits = habits

    def _queries(self, lookup: Lookup, beside: Sequence[Lookup]) -> list[tuple[str, str]]:
        queries = super()._queries(lookup, beside)
        if "one_source" in self._habits:
            return [(queries[0][0], lookup.sources[0])]
        if "wrong_source" in self._habits:
            return [(queries[0][0], elsewhere(lookup))]
        if "vague_query" in self._habits and not self.tries(lookup):
            return [(lookup.subject, "all")]
        most = 1 if "one_query" in self._habits else 2 if "two_queries" in self._habits else len(queries)
        return queries[:most]


class HabitExpert:
    """Shows its habits in one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._noisy = NoisyExpert(world)

    def teachers(self, question: Question, protocol: TextProtocol, habits: Collection[Habit]) -> Iterator[HabitTeacher]:
        """Teachers to try one after the other: one that finds something, and one that says that it does not know.

        Raises:
            Unreachable: the question cannot be answered so.
        """
        understood = question
        for noise in _OF_QUESTIONS:
            if noise in habits:
                understood = self._noisy.understood(understood, noise)
        yield HabitTeacher(understood, protocol, self.world, habits)
        unknown = understood.model_copy(update={"unanswerable": True, "answers": ()})
        yield HabitTeacher(unknown, protocol, self.world, habits)
