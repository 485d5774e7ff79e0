"""What a policy did in one rollout, as figures: the quantities that claims manipulate."""

from collections.abc import Sequence
from typing import Final

from agent.trace import Evidenced, Merged, Planned, Trace
from train.evaluation.metrics import cover

BEHAVIOURS: Final[dict[str, str]] = {
    "queries": "queries a round",
    "three_queries": "share of rounds with more than two queries",
    "merge_gold": "a merge holds a gold answer",
    "evidence_gold": "the evidence holds a gold answer",
    "answer_shown": "a passage that was shown holds a gold answer",
    "searched": "something was searched",
    "repeated": "a search was sent twice",
}
"""By name, in words; each of one question."""


def behaviour(trace: Trace, answers: Sequence[str]) -> dict[str, float | None]:
    """Every behaviour of a rollout; None where it could not show.

    Args:
        trace: of the rollout.
        answers: the question's, gold.
    """
    rounds = [[node.query for node in step.plan.nodes] for step in trace.steps if isinstance(step, Planned)]
    queries = [query for own in rounds for query in own]
    merges = [step.text for step in trace.steps if isinstance(step, Merged)]
    evidence = [step.text for step in trace.steps if isinstance(step, Evidenced)]
    return {
        "queries": len(queries) / len(rounds) if rounds else None,
        "three_queries": sum(len(own) > 2 for own in rounds) / len(rounds) if rounds else None,
        "merge_gold": _hold(merges, answers) if rounds else None,
        "evidence_gold": _hold(evidence, answers) if rounds else None,
        "answer_shown": _hold([passage.text for passage in trace.passages], answers),
        "searched": float(bool(rounds)),
        "repeated": float(len(set(queries)) < len(queries)) if rounds else None,
    }


def _hold(texts: Sequence[str], answers: Sequence[str]) -> float:
    return float(any(cover(text, answers) for text in texts))
