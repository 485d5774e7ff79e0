"""Runs an agent over questions, many at once, and scores each trace."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

from agent.errors import AgentError, QuestionError, SetupError
from agent.rollout import Agent
from agent.sources.questions import gold_found
from agent.trace import Trace
from train.evaluation.metrics import cover, exact_match, f1
from train.evaluation.questions import Question

HOPELESS: Final = 8
"""So many engine failures at the start, and nothing else, end the run."""


class Result(BaseModel):
    """One question, scored. `infrastructure`: an engine or a source failed, so the scores say nothing of the policy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    question: str
    type: str
    hops: int | None
    answers: tuple[str, ...]
    prediction: str
    em: bool
    f1: float
    cover: bool
    rounds: int = 0
    searches: int = 0
    policy_tokens: int = 0
    seconds: float = 0.0
    stopped: str = ""
    budget: str = ""
    detail: str = ""
    infrastructure: bool = False
    gold: int = 0
    """Gold passages that are known; 0: none are."""
    gold_found: int = 0
    """Those among the passages that were shown."""
    trace: str = ""


def score(question: Question, prediction: str) -> Result:
    """Score an answer alone."""
    return Result(
        id=question.id,
        question=question.question,
        type=question.type,
        hops=question.hops,
        answers=question.answers,
        prediction=prediction,
        em=exact_match(prediction, question.answers),
        f1=f1(prediction, question.answers),
        cover=cover(prediction, question.answers),
        gold=len(set(question.supporting)),
    )


def score_trace(question: Question, trace: Trace) -> Result:
    """Score a rollout: its answer, what it used, how it ended, and the gold passages that it was shown."""
    stopped, usage = trace.stopped, trace.usage
    reason = stopped.reason if stopped else "interrupted"
    shown = gold_found(question.supporting, (passage.id for passage in trace.passages))
    return score(question, trace.answer or "").model_copy(
        update={
            "rounds": usage.rounds,
            "searches": usage.searches,
            "policy_tokens": usage.policy_tokens,
            "seconds": trace.timings.total,
            "stopped": reason,
            "budget": (stopped and stopped.budget) or "",
            "detail": (stopped and stopped.detail) or "",
            "infrastructure": trace.infrastructure or reason in ("engine", "interrupted", "cancelled"),
            "gold_found": len(shown),
            "trace": trace.id,
        }
    )


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
