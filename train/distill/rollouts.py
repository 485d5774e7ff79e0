"""Rollouts for a distillation, made by any policy: one of each question with each seed, and what ended is kept.

It is an evaluation that keeps its traces; a second call goes on where the first was stopped.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent.settings import CairnSettings
from agent.trace import Trace
from agent.trace.io import read_traces
from agent.world import load_world
from train.evaluation.chosen import QuestionChoice
from train.evaluation.questions import GoldQuestion, read_questions, world_questions
from train.evaluation.session import Evaluation, Show
from train.evaluation.store import TRACES, read_results

FOLDER: Final = "rollouts"
_FOLDER_BEFORE: Final = "asked"
"""Its name in earlier versions."""


def questions_of(settings: CairnSettings, questions: Path | None, dataset: str | None) -> list[GoldQuestion]:
    """The questions with their gold: of a list, or of the settings' world."""
    return read_questions(questions, dataset) if questions else world_questions(load_world(settings.world).questions)


def make_rollouts(
    settings: CairnSettings,
    questions: Path | None,
    out: Path,
    *,
    dataset: str | None = None,
    seeds: Sequence[int],
    choice: QuestionChoice,
    concurrency: int,
    show: Show,
) -> list[Trace]:
    """Answer the questions with every seed, one seed after the other.

    Args:
        settings: of the agent.
        questions: a question list; without it the questions of the settings' world.
        dataset: the published form of the question list; left out, it is recognised.
        out: `rollouts/SEED/` is made in it.
        seeds: for sampling; more than one makes sense only where the temperature is above 0.
        choice: of the questions.
        concurrency: questions at the same time.
        show: gets the progress of each seed.

    Raises:
        SetupError: something that the settings name cannot be used, or too many questions failed.
    """
    if (out / _FOLDER_BEFORE).is_dir() and not (out / FOLDER).exists():
        (out / _FOLDER_BEFORE).rename(out / FOLDER)
    made: list[Trace] = []
    for seed in seeds:
        folder = out / FOLDER / str(seed)
        evaluation = Evaluation(
            settings,
            questions,
            dataset=dataset,
            choice=choice,
            concurrency=concurrency,
            seed=seed,
            out=folder,
            retry_failed=True,
        )
        evaluation.run(show)
        last = {result.id: result.trace for result in read_results(folder)}  # a question may have been tried again
        kept = set(last.values())
        made += (trace for trace in read_traces(folder / TRACES) if trace.id in kept)
    return made
