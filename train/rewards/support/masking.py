"""Which rollouts get no reward at all: what went wrong was not the policy's doing. They are masked, never scored."""

from typing import Final

from agent.trace import Answered, BudgetName, StopReason, Trace

_REASONS: Final[dict[StopReason, str]] = {
    "cancelled": "it was cancelled",
    "engine": "the engine failed",
    "interrupted": "it was interrupted",
}
_BUDGETS: Final[dict[BudgetName, str]] = {
    "seconds": "its time ended, which depends on the machine",
    "user": "a user requested the answer",
}


class Masked(Exception):
    """A rollout cannot be scored; the sentence says why. Judges, readers and embedders may raise it."""


def why_masked(trace: Trace) -> str:
    """Why a rollout gives no reward; empty where it gives one.

    Budgets that the policy itself uses up (rounds, searches, passages, tokens, context, credits) mask nothing.
    """
    if trace.infrastructure:
        return "a search or the engine failed"
    if trace.lost:
        return "a source failed in a search that others answered"
    stopped = trace.stopped
    if stopped is None:
        return "it has not ended"
    if stopped.reason in _REASONS:
        return _REASONS[stopped.reason]
    if stopped.reason == "forced" and stopped.budget in _BUDGETS:
        return _BUDGETS[stopped.budget]
    last = next((step for step in reversed(trace.steps) if isinstance(step, Answered)), None)
    return "the loop answered for itself" if last is not None and last.by == "loop" else ""
