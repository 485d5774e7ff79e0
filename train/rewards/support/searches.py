"""The searches of a finished rollout: the queries of each round, what is only a repeat, and what was found."""

from collections.abc import Iterable
from dataclasses import dataclass

from agent.evidence import Passage
from agent.trace import Planned, PlanRejected, Searched, Trace
from train.evaluation.words import content_words


@dataclass(frozen=True)
class PlanQuery:
    """One query of a plan, with its filled-in text where the policy filled it in."""

    text: str
    source: str

    def repeats(self, other: "PlanQuery") -> bool:
        """Whether it sends the same content words to the same source, in whatever order and with whatever others."""
        return self.source == other.source and content_words(self.text) == content_words(other.text)


@dataclass(frozen=True)
class RewardedRound:
    """One plan that ran: at least one of its queries was answered."""

    number: int
    queries: tuple[PlanQuery, ...]
    """Every query of the plan, also those that no budget allowed."""


def rounds_of(trace: Trace) -> tuple[RewardedRound, ...]:
    """The search rounds. A plan that was rejected is none: nothing was searched."""
    found = {(s.round, s.node): s for s in trace.steps if isinstance(s, Searched)}
    rounds: list[RewardedRound] = []
    for step in trace.steps:
        if isinstance(step, Planned) and any(number == step.round for number, _ in found):
            nodes = [(found.get((step.round, node.id)), node) for node in step.plan.nodes]
            queries = tuple(PlanQuery(ran.query if ran else node.query, node.source) for ran, node in nodes)
            rounds.append(RewardedRound(step.round, queries))
    return tuple(rounds)


def retrievals(trace: Trace) -> int:
    """How often something was searched: rounds, whatever the number of their queries."""
    return len(rounds_of(trace))


def rejected(trace: Trace) -> bool:
    """Whether a plan could not run, or lost queries whose sources are unknown."""
    return any(isinstance(s, PlanRejected) or (isinstance(s, Planned) and s.plan.dropped) for s in trace.steps)


def without_repeats(rounds: Iterable[RewardedRound]) -> tuple[RewardedRound, ...]:
    """The rounds with only those queries that repeat none before them, in the whole rollout."""
    before: list[PlanQuery] = []
    kept: list[RewardedRound] = []
    for one in rounds:
        new: list[PlanQuery] = []
        for query in one.queries:
            if not any(query.repeats(other) for other in before):
                new.append(query)
                before.append(query)
        kept.append(RewardedRound(one.number, tuple(new)))
    return tuple(kept)


def retrieved(trace: Trace) -> list[Passage]:
    """What sources found, also what the policy did not see."""
    return [passage for step in trace.steps if isinstance(step, Searched) for passage in step.passages]
