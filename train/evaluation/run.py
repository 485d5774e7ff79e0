"""Asks many questions at once and scores what is said; what fails on the way is recorded, and no wrong answer."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from agent.errors import AgentError, SetupError, first_of
from agent.trace import Trace
from train.evaluation.questions import GoldQuestion
from train.evaluation.respondents import AskFailed, Respondent
from train.evaluation.result import FAILURES, Failure, QuestionResult
from train.evaluation.scoring import Scoring, failed

HOPELESS: Final = 8
"""Questions that end before failures can end a run; more, where more run at the same time."""
MOST_FAILED: Final = 0.5

OnResult = Callable[[QuestionResult, Trace | None], None]
"""Called with each question as it ends, with its trace where there is one."""


class TooManyFailed(SetupError):
    """Too many questions failed to go on with the rest."""


async def evaluate(
    respondent: Respondent,
    questions: Sequence[GoldQuestion],
    *,
    scoring: Scoring,
    concurrency: int,
    on_result: OnResult,
    most_failed: float = MOST_FAILED,
) -> None:
    """Ask the questions and call `on_result` with each as it ends, in whatever order.

    Args:
        respondent: who answers.
        questions: each runs once.
        scoring: what makes a result of what was said.
        concurrency: questions on their way at the same time.
        on_result: see `OnResult`.
        most_failed: the share of failures, 0 to 1, over which the rest does not run.

    Raises:
        TooManyFailed: over this share failed while there were others to ask. `on_result` got what ended.
        SetupError: the respondent cannot be used at all.
    """
    waiting = iter(questions)
    failures: list[QuestionResult] = []
    done = 0

    async def work() -> None:
        nonlocal done
        for question in waiting:
            result, trace = await _ask(respondent, question, scoring)
            on_result(result, trace)
            done += 1
            if result.status == "failed":
                failures.append(result)
                if max(HOPELESS, concurrency) <= done < len(questions) and len(failures) > most_failed * done:
                    raise TooManyFailed(_hopeless(failures, done, most_failed))

    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(concurrency, len(questions))):
                workers.create_task(work())
    except ExceptionGroup as group:
        raise first_of(group, AgentError) from None


async def _ask(respondent: Respondent, question: GoldQuestion, scoring: Scoring) -> tuple[QuestionResult, Trace | None]:
    try:
        said = await respondent.ask(question)
    except AskFailed as error:
        return failed(question, error), None
    return await scoring.result(question, said)


def tally(results: Iterable[QuestionResult]) -> dict[Failure, int]:
    """How many failed in each way, the most frequent first."""
    counts = Counter[Failure](result.failure for result in results if result.status == "failed")
    return dict(counts.most_common())


def _hopeless(failures: Sequence[QuestionResult], done: int, most: float) -> str:
    kinds = "; ".join(f"{count}: {FAILURES[kind]}" for kind, count in tally(failures).items())
    return (
        f"{len(failures)} of the first {done} questions failed ({kinds}), and at most {most:.0%} may; the last error: "
        f"{failures[-1].detail}"
    )
