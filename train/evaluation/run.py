"""Runs an agent over questions, many at once, and scores each trace."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from agent.errors import AgentError, QuestionError, SetupError
from agent.rollout import Agent
from agent.sources.questions import gold_found
from agent.trace import Trace
from train.evaluation.metrics import cover, exact_match, f1
from train.evaluation.questions import Question
from train.evaluation.result import Failure, Result

__all__ = ["HOPELESS", "OnResult", "Result", "evaluate", "score", "score_trace"]

HOPELESS: Final = 8
"""So many engine failures at the start, and nothing else, end the run."""


def score(question: Question, prediction: str) -> Result:
    """Score an answer alone."""
    right = exact_match(prediction, question.answers)
    overlap, covers = f1(prediction, question.answers), cover(prediction, question.answers)
    return Result(
        id=question.id,
        question=question.question,
        type=question.type,
        hops=question.hops,
        answers=question.answers,
        prediction=prediction,
        em=right,
        f1=overlap,
        cover=covers,
        gold=len(set(question.supporting)),
        metrics={"em": float(right), "f1": overlap, "cover": float(covers)},
    )


def score_trace(question: Question, trace: Trace) -> Result:
    """Score a rollout: its answer, what it used, how it ended, and the gold passages that it was shown."""
    stopped, usage = trace.stopped, trace.usage
    shown = gold_found(question.supporting, (passage.id for passage in trace.passages))
    scored = score(question, trace.answer or "")
    failure = _failure(trace)
    used = {
        "rounds": usage.rounds,
        "searches": usage.searches,
        "policy_tokens": usage.policy_tokens,
        "seconds": trace.timings.total,
    }
    return scored.model_copy(
        update={
            **used,
            "metrics": scored.metrics | used,
            "status": "failed" if failure else "scored",
            "failure": failure,
            "stopped": stopped.reason if stopped else "interrupted",
            "budget": (stopped and stopped.budget) or "",
            "detail": (stopped and stopped.detail) or "",
            "infrastructure": bool(failure),
            "gold_found": len(shown),
            "trace": trace.id,
        }
    )


def _failure(trace: Trace) -> Failure:
    """What outside of the policy's doing went wrong."""
    reason = trace.stopped.reason if trace.stopped else "interrupted"
    if reason in ("interrupted", "cancelled"):
        return "interrupted"
    if reason == "engine":
        return "engine"
    return "source" if trace.infrastructure else ""


OnResult = Callable[[Result, Trace], None]


async def evaluate(
    agent: Agent, questions: Sequence[Question], *, concurrency: int, on_result: OnResult, seed: int = 0
) -> None:
    """Run `agent` over the questions and tell `on_result` of each as it ends, in whatever order.

    Raises:
        SetupError: the engine failed on each of the first questions, so it would on all.
    """
    waiting = iter(questions)
    failures: list[Result] = []
    done = 0

    async def work() -> None:
        nonlocal done
        for question in waiting:
            trace = await _rollout(agent, question, seed)
            result = score_trace(question, trace)
            on_result(result, trace)
            done += 1
            if result.stopped == "engine":
                failures.append(result)
            if len(failures) == done and done >= min(HOPELESS, len(questions)):
                raise SetupError(f"the engine failed on the first {done} questions: {result.detail}")

    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(concurrency, len(questions))):
                workers.create_task(work())
    except* AgentError as group:
        raise group.exceptions[0] from None


async def _rollout(agent: Agent, question: Question, seed: int) -> Trace:
    try:
        trace = agent.new_trace(question.question, seed=seed)
    except QuestionError as error:
        raise SetupError(f"the question {question.id!r} cannot be asked: {error}") from error
    return await agent.run(trace)
