"""The turns of a rollout: which of them each token is in, and which one first observed the answer.

A turn ends where the environment speaks in the rollout's own context; the last one ends with the rollout. A branch is
in the turn whose plan it fills. Turns count from 0.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from agent.trace import Answered, Gathered, Trace
from agent.trace.samples import context_of
from train.evaluation.normalisations import squad
from train.rewards.support.scores import holds_answer, score
from train.rewards.task import Task

_BARE: Final = frozenset({"yes", "no"})
"""Answers that any text may hold."""


@dataclass(frozen=True)
class TurnCredit:
    """What the turns of one rollout are paid beside its own reward."""

    rewards: tuple[float, ...] = ()
    """Of each turn; none where only the rollout is paid."""
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    """For the monitors, which average each over the rollouts that have it."""


def observations(trace: Trace) -> list[int]:
    """The places of the segments that end turns."""
    own = enumerate(trace.segments)
    return [at for at, segment in own if segment.by == "environment" and segment.branch == "main"]


def turn_count(trace: Trace) -> int:
    """The number of turns in which the policy sampled; at least 1."""
    ends = observations(trace)
    own = enumerate(trace.segments)
    return 1 + max((bisect_left(ends, at) for at, one in own if one.by == "policy" and one.branch == "main"), default=0)


def token_turns(trace: Trace, branch: str) -> tuple[int, ...]:
    """The turn of each token of a row, as `agent.trace.samples.to_samples` makes it.

    Args:
        trace: of the rollout.
        branch: of the row.
    """
    ends = observations(trace)
    last, parent = len(trace.segments), branch
    while parent != "main":
        last, parent = trace.branches[parent].segment, trace.branches[parent].parent
    found: list[int] = []
    for at in context_of(trace, branch):
        place = at if trace.segments[at].branch == "main" else last
        found += [bisect_left(ends, place)] * len(trace.segments[at].ids or ())
    return tuple(found)


def first_hit(trace: Trace, task: Task) -> int | None:
    """The turn whose passages first hold a gold answer in whole words; None where no turn's do.

    Only passages count that the policy was shown: a query that says the answer observes nothing. Yes, no, an option,
    and what the question says itself are in passages by chance, so they are no hit.
    """
    answers = _telling(task)
    shown = (step for step in trace.steps if isinstance(step, Gathered) and step.segments)
    for step in shown:
        if any(holds_answer(f"{passage.title}\n{passage.text}", answers) for passage in step.passages):
            return bisect_left(observations(trace), step.segments[0])
    return None


def hit_credit(trace: Trace, task: Task, *, share: float) -> TurnCredit:
    """TSPO's first-occurrence latent reward (2601.22776): a wrong rollout that observed the answer gets a part of it.

    With t the turn of the first hit, turn k <= t gets `share` * (1 - F1 of the answer), every later turn nothing. So a
    rollout's answer and its hit are together at most 1, and a right answer gains nothing by it. That F1 makes "wrong"
    gradual, and that the part is added to the reward, is ours: we have the paper's abstract, not its formula.

    Args:
        trace: of the rollout.
        task: of its question.
        share: the paper's partial reward, 0 to 1.
    """
    said = next((s.text for s in reversed(trace.steps) if isinstance(s, Answered) and s.by == "policy"), None)
    right, turns = score(said, task, "f1"), turn_count(trace)
    hit = first_hit(trace, task)
    if hit is None:
        return TurnCredit((0.0,) * turns, {"first_hit_share": 0.0, "first_hit_wrong_share": 0.0})
    paid = tuple(share * (1 - right) if turn <= hit else 0.0 for turn in range(turns))
    wrong = score(said, task, "em") < 1
    figures = {"first_hit_share": 1.0, "first_hit_wrong_share": float(wrong), "first_hit_turn": hit + 1.0}
    return TurnCredit(paid, figures)


def _telling(task: Task) -> Sequence[str]:
    """The gold answers that a passage does not hold by chance."""
    if task.unanswerable or task.options:
        return ()
    return [a for a in task.answers if squad(a) not in _BARE and not holds_answer(task.question, [a])]
