"""One job as a process does it: the shared start, one training, or one arm that is evaluated.

Each goes on where an earlier session was stopped, and leaves what it makes whole or not at all. What only trainings
need is imported for them alone.
"""

from typing import Final

from agent.sources.corpus.folder import locked
from lab.reproduce.design import Arm
from lab.reproduce.evaluating import Answers, evaluate, keep_answers, points_as_one
from lab.reproduce.jobs import Job
from lab.reproduce.ledger import Figures
from lab.reproduce.real import RealArm, RealSet
from lab.reproduce.real_run import answer, build
from lab.reproduce.study import Study
from lab.reproduce.waiting import beat
from lab.reproduce.worlds import evaluation_world, question_lists

LOCKS: Final = "locks"


def do(study: Study, job: Job, *, processes: int = 1) -> Figures | None:
    """Do a job; one of a session that was killed, which notices that only after its step, is waited for.

    Args:
        study: it belongs to.
        job: one of its jobs; what it needs is done.
        processes: that may share the supervised part.

    Returns:
        Its figures; None where it was interrupted (its state is saved then).

    Raises:
        SetupError: something cannot be used, or a file cannot be written.
    """
    with locked(study.out / LOCKS / job.name, wait=True):
        return _do(study, job, processes)


def _do(study: Study, job: Job, processes: int) -> Figures | None:
    if job.arm is not None and not job.arm.reader:
        return _evaluate(study, job.arm, job.seed)
    if job.real_set is not None:
        return _real(study, job.real, job.real_set)
    if job.kind == "lists":
        question_lists(study, job.seed)
        return {"n": float(study.recipe.worlds.listed)}
    import torch

    torch.set_num_threads(1)
    if job.arm is not None:
        return _evaluate(study, job.arm, job.seed)
    from lab.reproduce.training import start, train

    return train(study, job.training, job.seed) if job.training is not None else start(study, processes)


def _real(study: Study, arm: RealArm | None, one: RealSet) -> Figures:
    """Build the index of a set, or answer its questions."""
    real, index = study.real, study.index(one.name)
    assert real is not None, "only a study with real questions has such jobs"
    if arm is None:
        build(real, one, index, dense=one.group == "hops")
        return {"n": float(real.questions)}
    out = study.real_folder(arm.name, one.name)
    return _summed(answer(real, arm, one, index=index, out=out, show=lambda *_: beat()))


def _evaluate(study: Study, arm: Arm, seed: int) -> Figures:
    """Answer the questions; with a trained policy, at every point of its curve."""
    world, out = evaluation_world(study, arm.world, seed), study.answers_folder(arm.name, seed)
    points = study.recipe.points if arm.has_curve else 1
    course: list[Answers] = []
    for point in range(1, points + 1):
        here = out if point == points else out / f"point-{point}"
        policy = study.exported(arm.policy, seed, point=point if arm.has_curve else 0)
        course.append(evaluate(arm, world=world, policy=policy, out=here, seed=seed, show=lambda *_: beat()))
    answers = course[-1]
    if arm.has_curve:
        keep_answers(answers := points_as_one(course), out)
    return _summed(answers)


def _summed(answers: Answers) -> Figures:
    em = [one["em"] for one in answers.values()]
    return {"n": float(len(em)), "em": round(sum(em) / len(em), 4)}
