"""The jobs of a study, in their order, with what each needs, what decides its outcome, and about how long it takes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from agent.build.shipped import SMALL
from lab.reproduce.design import DIFFICULTIES, MIXES, ORACLE, SHIPPED, START, Arm, Direction, Training
from lab.reproduce.ledger import Ledger
from lab.reproduce.papers import all_arms, arms_of, trainings
from lab.reproduce.real import Group, RealArm, RealSet, real_arms
from lab.reproduce.real_run import RealStudy
from lab.reproduce.study import EVALUATED, Study
from train.safety.manifest import hash_of, hashes_of

Kind = Literal["start", "lists", "trained", "evaluated", "index", "real"]
START_JOB: Final = "start"
LISTS: Final = "lists"
INDEX: Final = "index"
REAL_JOB: Final = "real"

_ROLLOUT_SECONDS: Final = {"multisearch": 0.39, "dag": 0.25, "evidence": 0.3, "reflect": 0.4, "kg": 0.6}
"""Of one core, a rollout of the start with its share of the update, by protocol."""
_QUESTION_SECONDS: Final = {"multisearch": 0.31, "dag": 0.14, "evidence": 0.24, "reflect": 0.28, "kg": 1.0}
"""Of one core, a question of an evaluation, by protocol."""
_ORACLE_SECONDS: Final = 0.03
_LISTS_SECONDS: Final = 100.0
_INDEX_SECONDS: Final = 150.0
REAL_SECONDS: Final[dict[Group, float]] = {"hops": 7.3, "facts": 2.5}
"""A real question, of one core, by kind of set."""
_JOB_SECONDS: Final = 12.0
"""Of a training: loading, exporting."""
_LOADING_SECONDS: Final = 3.0
"""Of an evaluation."""
_TOKENS_A_SECOND: Final = 3500.0
"""Supervised, one core."""
_CRITIC: Final = 3.3
"""What a critic and updates in float32 cost, in the time of the others' rollouts."""
_RESAMPLED: Final = 1.5
"""Rollouts of dynamic sampling, for one that is learned from."""


@dataclass(frozen=True)
class Job:
    """One thing to do; what is done once is not done again."""

    name: str
    kind: Kind
    plan: dict[str, Any] = field(repr=False)
    """Of plain values: everything that decides what comes out. Files are in it by their content, so that a folder can
    be moved, and a file that has changed is another plan."""
    seconds: float
    """About so long, on one core."""
    seed: int = 0
    training: Training | None = None
    arm: Arm | None = None
    real: RealArm | None = None
    real_set: RealSet | None = None
    needs: tuple[str, ...] = ()


def jobs_of(study: Study, directions: Sequence[Direction]) -> list[Job]:
    """All that these directions need."""
    return jobs_for(study, arms_of(directions))


def jobs_for(study: Study, arms: Sequence[Arm]) -> list[Job]:
    """All that these arms need: what needs no training first, then seed by seed."""
    there = trainings()
    jobs = [_start(study)] if any(one.trained or one.policy == START for one in arms) else []
    jobs += [_evaluated(study, one, seed) for one in arms if not one.trained for seed in study.seeds]
    built = any(there[one.policy].questions for one in arms if one.trained)
    for seed in study.seeds:
        jobs += [_lists(study, seed)] if built else []
        for name in dict.fromkeys(one.policy for one in arms if one.trained):
            jobs.append(_trained(study, there[name], seed))
            jobs += [_evaluated(study, one, seed) for one in arms if one.policy == name]
    return jobs


def real_jobs(study: Study) -> list[Job]:
    """All that the claims on real questions need; nothing where the study has no data for them."""
    if (real := study.real) is None:
        return []
    arms, sets = real_arms(), real.recipe.sets
    jobs = [_index(real, one) for one in sets if any(arm.group == one.group for arm in arms)]
    return [*jobs, *(_real(real, arm, one) for arm in arms for one in real.sets_of(arm))]


def all_jobs(study: Study) -> list[Job]:
    """All that a study has: of every arm, and of real questions where it has them."""
    return [*jobs_for(study, list(all_arms().values())), *real_jobs(study)]


def _index(real: RealStudy, one: RealSet) -> Job:
    plan = _documents(real, one) | _graph(one)
    return Job(f"{INDEX}/{one.name}", "index", plan, _INDEX_SECONDS, real_set=one)


def _documents(real: RealStudy, one: RealSet) -> dict[str, Any]:
    files = {name: _content(real.data / name) for name in (one.questions, one.corpus)}
    return {"files": files, "triples": one.triples, "dense": real.recipe.dense}


def _graph(one: RealSet) -> dict[str, Any]:
    return {"share": one.share} if one.triples else {}


def _real(real: RealStudy, arm: RealArm, one: RealSet) -> Job:
    index = _index(real, one)
    plan = {"arm": arm.model_dump(mode="json"), "index": _documents(real, one), "questions": real.questions}
    plan |= {"policy": _without_card(SMALL), **(_graph(one) if arm.graph else {})}
    seconds = _LOADING_SECONDS + real.questions * REAL_SECONDS[one.group]
    name = f"{REAL_JOB}/{arm.name}/{one.name}"
    return Job(name, "real", plan, seconds, real=arm, real_set=one, needs=(index.name,))


def answers_of(study: Study, job: Job) -> Path | None:
    """Folder of what a job answers; None where it has no questions."""
    if job.arm is not None:
        return study.answers_folder(job.arm.name, job.seed)
    if job.real is not None and job.real_set is not None:
        return study.real_folder(job.real.name, job.real_set.name)
    return None


def needed(waiting: Sequence[Job]) -> list[Job]:
    """Of jobs that are not done, those that have questions, and what they stand on; in the same order.

    Args:
        waiting: each after what it needs.
    """
    kept: list[Job] = []
    wanted: set[str] = set()
    for job in reversed(waiting):
        if job.arm is not None or job.real is not None or job.name in wanted:
            kept.append(job)
            wanted |= set(job.needs)
    return kept[::-1]


def left_seconds(jobs: Iterable[Job], ledger: Ledger) -> float:
    """About how long what is not done takes, on one core; by the same jobs with other seeds, where those are done."""
    jobs = list(jobs)
    timed = _timed(jobs, ledger)
    return sum(expected(job, timed) for job in jobs if ledger.seconds(job.name) is None)


def _timed(jobs: Iterable[Job], ledger: Ledger) -> dict[str, float]:
    """Job → seconds, of those whose whole time is known."""
    return {job.name: seconds for job in jobs if (seconds := ledger.timed(job.name)) is not None}


def expected(job: Job, timed: dict[str, float]) -> float:
    """Seconds that a job takes, by those of other seeds where they are known."""
    stem = job.name.rpartition("/")[0]
    same = [seconds for name, seconds in timed.items() if stem and name.rpartition("/")[0] == stem]
    return sum(same) / len(same) if same else job.seconds


def minutes_by_arm(jobs: Iterable[Job], ledger: Ledger) -> Iterator[tuple[str, int, int, float, float]]:
    """Of each arm: name, jobs, those done, minutes that they took, minutes that are left (of one core)."""
    jobs = list(jobs)
    took = {job.name: seconds for job in jobs if (seconds := ledger.seconds(job.name)) is not None}
    timed = _timed(jobs, ledger)
    for arm in dict.fromkeys(_arm_name(job) for job in jobs):
        own = [job for job in jobs if _arm_name(job) == arm]
        done = [job for job in own if job.name in took]
        spent = sum(took[job.name] for job in done) / 60
        left = sum(expected(job, timed) for job in own if job.name not in took) / 60
        yield arm, len(own), len(done), spent, left


def _arm_name(job: Job) -> str:
    return job.name.rpartition("/")[0] or job.name


def _family(protocol: str) -> str:
    """The built-in protocol that one of the study's own is like."""
    return next(name for name in _ROLLOUT_SECONDS if protocol.startswith(name))


def _start(study: Study) -> Job:
    tokens = study.sft.optimizer.tokens
    return Job(START_JOB, "start", _start_plan(study), _JOB_SECONDS + (0 if study.hub else tokens / _TOKENS_A_SECOND))


def _start_plan(study: Study) -> dict[str, Any]:
    if study.hub:
        return {"hub": _content(study.hub)}
    said = study.sft.model_dump(mode="json")
    named = {Path(name).stem: _content(Path(name)) if name.endswith(".toml") else "" for name in study.sft.protocols}
    said["protocols"] = named
    return {"recipe": said | ({"start": _content(Path(study.sft.start))} if study.sft.start else {})}


@cache
def _content(path: Path) -> str:
    """The hash of a file or folder, as one process finds it."""
    return hash_of(path)


@cache
def _without_card(model: Path) -> dict[str, str]:
    """File → hash. What is written about a model changes, and it answers as before."""
    return {name: sha256 for name, sha256 in hashes_of(model).items() if name != "README.md"}


def _lists(study: Study, seed: int) -> Job:
    plan = {"worlds": study.recipe.worlds.model_dump(mode="json"), "seed": seed}
    return Job(f"{LISTS}/{seed}", "lists", plan, _LISTS_SECONDS, seed)


def _trained(study: Study, training: Training, seed: int) -> Job:
    recipe = study.rl_recipe(training, seed)
    rollouts = recipe.steps * recipe.rollout.prompts * recipe.rollout.group
    again = _RESAMPLED if recipe.learning.resampling else _CRITIC if recipe.kind == "ppo" else 1.0
    return Job(
        f"trained/{training.name}/{seed}",
        "trained",
        _training_plan(study, training, seed),
        _JOB_SECONDS + rollouts * again * _ROLLOUT_SECONDS[_family(training.protocol)],
        seed,
        training=training,
        needs=(START_JOB, f"{LISTS}/{seed}") if training.questions else (START_JOB,),
    )


def _training_plan(study: Study, training: Training, seed: int) -> dict[str, Any]:
    read = study.rl_recipe(training, seed)
    recipe = read.model_dump(mode="json") | {"start": _start_plan(study)}
    if read.local_reader:
        recipe["local_reader"] = _content(read.local_reader)
    recipe["protocols"] = [training.protocol, training.protocol_changes]
    plan: dict[str, Any] = {"recipe": recipe, "points": study.recipe.points}
    if training.questions:
        plan |= {"questions": study.recipe.worlds.model_dump(mode="json")}
        plan["recipe"] = recipe | {"data": {**recipe["data"], "questions": training.questions, "search": None}}
    return plan


def _evaluated(study: Study, arm: Arm, seed: int) -> Job:
    own = {"mix": MIXES[arm.world], "own_difficulty": DIFFICULTIES.get(arm.world, {})}
    worlds = own | study.recipe.worlds.model_dump(mode="json")
    plan = {"arm": arm.model_dump(mode="json"), "seed": seed, "worlds": worlds}
    if arm.temperature:
        plan["sampling"] = "each question by its own seed"
    if arm.trained:
        plan["policy"] = _training_plan(study, trainings()[arm.policy], seed)
    elif arm.policy == START:
        plan["policy"] = _start_plan(study)
    else:
        plan["policy"] = ORACLE if arm.policy == ORACLE else _content(study.exported(SHIPPED, seed))
    needs = (f"trained/{arm.policy}/{seed}",) if arm.trained else (START_JOB,) if arm.policy == START else ()
    each = _ORACLE_SECONDS if arm.policy == ORACLE else _QUESTION_SECONDS[_family(arm.protocol)]
    times = study.recipe.points if arm.has_curve else 1
    seconds = times * (_LOADING_SECONDS + study.recipe.worlds.questions_of(arm.world) * each)
    return Job(f"{EVALUATED}/{arm.name}/{seed}", "evaluated", plan, seconds, seed, arm=arm, needs=needs)
