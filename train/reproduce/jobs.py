"""The jobs of a study, in their order, with what each needs, what decides its outcome, and about how long it takes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from train.reproduce.design import Asked, Direction, Training
from train.reproduce.ledger import Ledger
from train.reproduce.papers import asked_by, trainings
from train.reproduce.study import Study

Kind = Literal["start", "trained", "asked"]
START_JOB: Final = "start"

_ROLLOUT_SECONDS: Final = {"multisearch": 0.25, "dag": 0.13, "evidence": 0.3, "reflect": 0.25, "kg": 0.35}
"""Of one core, a rollout of the start with its share of the update, by protocol."""
_QUESTION_SECONDS: Final = 0.25
_JOB_SECONDS: Final = 12.0
"""Loading, exporting."""
_TOKENS_A_SECOND: Final = 3500.0
"""Supervised, one core."""
_RESAMPLED: Final = 1.5
"""Rollouts of dynamic sampling, for one that is learned from."""


@dataclass(frozen=True)
class Job:
    """One thing to do; what is done once is not done again."""

    name: str
    kind: Kind
    plan: dict[str, Any] = field(repr=False)
    """Of plain values: everything that decides what comes out."""
    seconds: float
    """About so long, on one core."""
    seed: int = 0
    training: Training | None = None
    asked: Asked | None = None
    needs: tuple[str, ...] = ()


def jobs_of(study: Study, directions: Sequence[Direction]) -> list[Job]:
    """All that these directions need: what needs no training first, then seed by seed."""
    asked = asked_by(directions)
    there = trainings()
    jobs = [_start(study)] if any(one.policy != "shipped" for one in asked) else []
    jobs += [_asked(study, one, seed) for one in asked if not one.trained for seed in study.seeds]
    for seed in study.seeds:
        for name in dict.fromkeys(one.policy for one in asked if one.trained):
            jobs.append(_trained(study, there[name], seed))
            jobs += [_asked(study, one, seed) for one in asked if one.policy == name]
    return jobs


def left_seconds(jobs: Iterable[Job], ledger: Ledger) -> float:
    """About how long what is not done takes, on one core; by the same jobs with other seeds, where those are done."""
    jobs = list(jobs)
    took = {job.name: seconds for job in jobs if (seconds := ledger.seconds(job.name)) is not None}
    return sum(expected(job, took) for job in jobs if job.name not in took)


def expected(job: Job, took: dict[str, float]) -> float:
    """Seconds that a job takes, by those of other seeds where they are known."""
    stem = job.name.rpartition("/")[0]
    same = [seconds for name, seconds in took.items() if stem and name.rpartition("/")[0] == stem]
    return sum(same) / len(same) if same else job.seconds


def minutes_by_arm(jobs: Iterable[Job], ledger: Ledger) -> Iterator[tuple[str, int, int, float, float]]:
    """Of each arm: name, jobs, those done, minutes that they took, minutes that are left (of one core)."""
    jobs = list(jobs)
    took = {job.name: seconds for job in jobs if (seconds := ledger.seconds(job.name)) is not None}
    for arm in dict.fromkeys(_arm(job) for job in jobs):
        own = [job for job in jobs if _arm(job) == arm]
        done = [job for job in own if job.name in took]
        spent = sum(took[job.name] for job in done) / 60
        left = sum(expected(job, took) for job in own if job.name not in took) / 60
        yield arm, len(own), len(done), spent, left


def _arm(job: Job) -> str:
    return job.name.rpartition("/")[0] or job.name


def _start(study: Study) -> Job:
    tokens = study.sft.optimizer.tokens
    plan = {"hub": str(study.hub)} if study.hub else {"recipe": study.sft.model_dump(mode="json")}
    return Job(START_JOB, "start", plan, _JOB_SECONDS + (0 if study.hub else tokens / _TOKENS_A_SECOND))


def _trained(study: Study, training: Training, seed: int) -> Job:
    recipe = study.rl_recipe(training, seed)
    rollouts = recipe.steps * recipe.rollout.prompts * recipe.rollout.group
    again = _RESAMPLED if recipe.learning.attempts else 1.0
    plan = {"recipe": recipe.model_dump(mode="json"), "sources": training.sources}
    return Job(
        f"trained/{training.name}/{seed}",
        "trained",
        plan | _listed(study, training),
        _JOB_SECONDS + rollouts * again * _ROLLOUT_SECONDS[training.protocol],
        seed,
        training=training,
        needs=(START_JOB,),
    )


def _listed(study: Study, training: Training) -> dict[str, Any]:
    return {"worlds": study.recipe.worlds.model_dump()} if training.questions else {}


def _asked(study: Study, asked: Asked, seed: int) -> Job:
    plan = {"asked": asked.model_dump(mode="json"), "seed": seed, "worlds": study.recipe.worlds.model_dump()}
    if asked.trained:
        plan["recipe"] = study.rl_recipe(trainings()[asked.policy], seed).model_dump(mode="json")
    needs = () if asked.policy == "shipped" else (f"trained/{asked.policy}/{seed}",) if asked.trained else (START_JOB,)
    seconds = _JOB_SECONDS + study.recipe.worlds.questions * _QUESTION_SECONDS * (3 if asked.dense else 1)
    return Job(f"asked/{asked.name}/{seed}", "asked", plan, seconds, seed, asked=asked, needs=needs)
