"""Information gain (IGPO, 2510.14967): how much likelier each observation makes the gold answer to the policy."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from statistics import fmean
from typing import Final

from agent.errors import ContextFull
from agent.policies.base import Policy
from agent.trace import Segment, Trace
from train.rl.batch import WeightedRow
from train.rl.rollouts import RolloutResult
from train.rl.turns import TurnCredit, observations, turn_count

Probabilities = Callable[[Sequence[WeightedRow]], list[float]]
"""From rows to the length-normalised probability of the tokens of each that have a weight."""
_BOX: Final = "\\boxed{"


def gain_credit(results: Sequence[RolloutResult], policy: Policy, probabilities: Probabilities) -> list[TurnCredit]:
    """What each turn of each rollout gained, in one call of `probabilities`; nothing for a rollout that is masked.

    A turn's gain is P(answer | context up to and with its observation) - P(answer | context before it), with
    P = exp(1 / tokens * sum of log-probabilities), teacher-forced. The last turn has none: the outcome is its reward.

    Args:
        results: rollouts.
        policy: that sampled them; it encodes the answers.
        probabilities: of the same weights.
    """
    rows = [answer_rows(one, policy) for one in results]
    found = iter(probabilities(list(chain.from_iterable(rows))))
    return [_credit([next(found) for _ in own], one) for own, one in zip(rows, results, strict=True)]


def answer_rows(result: RolloutResult, policy: Policy) -> list[WeightedRow]:
    """The contexts in which the answer is looked up: before the first turn, and behind each observation.

    The answer block is opened as the loop opens it, and holds the first gold answer; only the answer's own tokens have
    a weight. There are none for a masked rollout, for a question without an answer, and for an answer that is too long
    for the context.
    """
    trace, task = result.trace, result.ask.task
    if not result.samples or task.unanswerable:
        return []
    rows: list[WeightedRow] = []
    for end in _ends(trace, user_turns=result.ask.protocol.deliver == "user"):
        before = [segment for segment in trace.segments[:end] if segment.branch == "main"]
        try:
            opening, answer = _encoded(result, policy, behind=before[-1])
        except ContextFull:
            return []
        ids = (*(id for segment in before for id in segment.ids or ()), *opening, *answer)
        if len(ids) > policy.context_tokens:
            return []
        weights = (*(0.0,) * (len(ids) - len(answer)), *(1.0,) * len(answer))
        nothing = (0.0,) * len(ids)
        rows.append(WeightedRow(ids, weights, nothing, nothing, result.group))
    return rows


def _ends(trace: Trace, *, user_turns: bool) -> Iterator[int]:
    """Where the contexts end: at the first policy segment, and behind each observation that a turn follows.

    In a chat the policy's new turn, which the loop begins, belongs to the context.
    """
    yield next(at for at, segment in enumerate(trace.segments) if segment.by == "policy")
    for at in observations(trace)[: turn_count(trace) - 1]:
        yield at + 2 if user_turns else at + 1


def _encoded(result: RolloutResult, policy: Policy, *, behind: Segment) -> tuple[Sequence[int], Sequence[int]]:
    """What opens the answer block behind a segment, and the answer, as the engine encodes them.

    Raises:
        ContextFull: they are too long.
    """
    protocol, question = result.ask.protocol, result.ask.question
    opened = None if behind.by == "environment" else protocol.opened
    closing = protocol.closing(opened) if opened and opened != "answer" else ""
    opening = "" if opened == "answer" else protocol.opening("answer")
    line = "" if (closing or behind.text).endswith("\n") or not opening else "\n"
    box = _BOX if protocol.answer_in == "boxed" else ""
    context = policy.open(protocol, question.question, history=question.history)
    begun = context.append(closing + line + opening + box, by="loop")
    return begun.ids or (), context.append(result.ask.task.answers[0], by="environment").ids or ()


def _credit(found: Sequence[float], result: RolloutResult) -> TurnCredit:
    if not result.samples:
        return TurnCredit()
    gains = tuple(after - before for before, after in pairwise(found))
    rewards = gains or (0.0,) * (turn_count(result.trace) - 1)
    figures = {"answer_probability_first": found[0], "answer_probability_last": found[-1]} if found else {}
    if gains:
        figures["information_gain"] = fmean(gains)
    return TurnCredit((*rewards, 0.0), figures)
