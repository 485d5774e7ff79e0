"""The noisy expert: it writes as regularly as the oracle, and decides badly what to look for, where, and how long.

It is a teacher for the deliberately weak start of reinforcement learning, never for a policy that is shipped. What it
says is true of what it observed: it is wrong because it searched too little, or in the wrong place.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from agent.protocols import TextProtocol
from agent.world import World
from agent.world.records import Lookup, Question
from agent.world.relations import RELATIONS
from train.common.habit import Noise
from train.sft.oracle.plans import Plans
from train.sft.oracle.queries import first_query
from train.sft.oracle.teacher import Teacher, Unreachable

WEIGHTS: Final[Mapping[Noise, float]] = {
    "few_rounds": 12.0,
    "one_source": 4.0,
    "wrong_source": 1.0,
    "one_query": 4.0,
    "vague_query": 2.0,
    "known": 4.0,
}
_AT_LEAST: Final = 4.0
"""What the weights of a question's noises are counted to, where they are less: rare ones stay rare."""
_ELSEWHERE: Final = ("arxiv", "kg", "news", "web")


def draw(rng: random.Random, share: float, possible: Sequence[Noise]) -> Noise | None:
    """How a trajectory is noisy; None where it is a good one.

    Args:
        rng: decides.
        share: of noisy ones, 0 to 1, where a question allows the usual noises.
        possible: for this question under this protocol.
    """
    if rng.random() >= share or not possible:
        return None
    weights = [WEIGHTS[noise] for noise in possible]
    drawn: list[Noise | None] = [*possible, None]
    return rng.choices(drawn, [*weights, max(0.0, _AT_LEAST - sum(weights))])[0]


def noises(question: Question, protocol: TextProtocol) -> list[Noise]:
    """In which ways the question can be answered badly under this protocol."""
    if question.well_known:
        return ["known"]
    if question.unanswerable:
        return []
    lookups = [lookup for stage in question.plan for lookup in stage]
    found: list[Noise] = ["few_rounds"] if len(lookups) > 1 else []
    if protocol.plan == "queries":
        found.append("one_query")
    elif protocol.plan != "lines":
        found.append("vague_query")
    else:
        if any(len(lookup.sources) > 1 for lookup in lookups):
            found.append("one_source")
        found.append("wrong_source")
    return found


def elsewhere(lookup: Lookup) -> str:
    """A source that cannot hold it."""
    return next(name for name in _ELSEWHERE if name not in lookup.sources)


class NoisyTeacher(Teacher):
    """Turns that choose badly in one way; it tries nothing twice."""

    def __init__(self, question: Question, protocol: TextProtocol, world: World, noise: Noise) -> None:
        super().__init__(question, protocol, world.document)
        self._plans = _NoisyPlans(protocol, noise)
        self._tries = 1


class _NoisyPlans(Plans):
    """Plans with one query for each look-up, and a bad one."""

    def __init__(self, protocol: TextProtocol, noise: Noise) -> None:
        super().__init__(protocol)
        self._noise = noise

    def _queries(self, lookup: Lookup, beside: Sequence[Lookup]) -> list[tuple[str, str]]:
        match self._noise:
            case "one_source":
                return [(first_query(lookup), lookup.sources[0])]
            case "wrong_source":
                return [(first_query(lookup), elsewhere(lookup))]
            case "one_query":
                return [(lookup.queries[-1], "all")]
            case "vague_query":
                return [(lookup.subject, "all")]
            case _:
                return super()._queries(lookup, beside)


class NoisyExpert:
    """Teaches bad choices in one world. It knows what each source says, so that an outdated page can be believed."""

    def __init__(self, world: World) -> None:
        self.world = world

    def teachers(self, question: Question, protocol: TextProtocol, noise: Noise) -> Iterator[NoisyTeacher]:
        """Teachers to try one after the other: one that finds something, and one that says that it does not know.

        Raises:
            Unreachable: the question cannot be answered so.
        """
        understood = self.understood(question, noise)
        yield NoisyTeacher(understood, protocol, self.world, noise)
        unknown = understood.model_copy(update={"unanswerable": True, "answers": ()})
        yield NoisyTeacher(unknown, protocol, self.world, noise)

    def understood(self, question: Question, noise: Noise) -> Question:
        """The question as the expert takes it: with a shorter plan, or with what one source says.

        Raises:
            Unreachable: this noise changes nothing in it.
        """
        match noise:
            case "few_rounds":
                return _cut_short(question)
            case "one_source":
                return self._believing(question)
            case "known":
                return question.model_copy(update={"well_known": False})
            case _:
                return question

    def _believing(self, question: Question) -> Question:
        """The plan with the values that the least current source of each look-up gives."""
        plan: list[tuple[Lookup, ...]] = []
        renamed: dict[str, str] = {}
        for stage in question.plan:
            believed = [self._believed(lookup, renamed) for lookup in stage]
            renamed |= {
                was.values[0]: now.values[0]
                for was, now in zip(stage, believed, strict=True)
                if len(was.values) == len(now.values) == 1
            }
            plan.append(tuple(believed))
        last = plan[-1][-1].values
        changed = last != question.plan[-1][-1].values and not (question.asks or question.type == "intersection")
        answers = last[:1] if changed else question.answers
        return question.model_copy(update={"plan": tuple(plan), "answers": answers})

    def _believed(self, lookup: Lookup, renamed: Mapping[str, str]) -> Lookup:
        subject = renamed.get(lookup.subject, lookup.subject)
        source = lookup.sources[0]
        stale = not lookup.is_list and not lookup.when and RELATIONS[lookup.relation].changes
        if subject == lookup.subject and not stale:
            return lookup
        if lookup.is_list or lookup.when:
            raise Unreachable(f"nothing can be said of another {lookup.noun}")
        said = self._said.get((source, subject, lookup.relation))
        if said is None:
            raise Unreachable(f"{source} says nothing of the {lookup.noun} of {subject}")
        values, document = said
        return lookup.model_copy(update={"subject": subject, "values": values, "gold": document})

    @cached_property
    def _said(self) -> Mapping[tuple[str, str, str], tuple[tuple[str, ...], str]]:
        """(source, subject, relation) → what its newest document says last, and the id of that."""
        said: dict[tuple[str, str, str], tuple[tuple[str, ...], str]] = {}
        for document in sorted(self.world.documents, key=lambda document: document.date):
            for stated in document.states:
                if not stated.doubtful:
                    said[document.source, stated.subject, stated.relation] = (stated.values, document.id)
        return said


def _cut_short(question: Question) -> Question:
    """Without the last thing to look up; what was found by then is the answer, or a guess where names are given."""
    *before, last = question.plan
    plan = (*before, last[:1]) if len(last) > 1 else tuple(before)
    if not plan:
        raise Unreachable("there is only one thing to look up")
    guess = question.candidates[:1] or plan[-1][0].values[:1]
    changes = {"plan": plan, "answers": guess, "type": "chain1", "asks": "", "candidates": ()}
    return question.model_copy(update=changes)
