"""One job as a process does it: the shared start, one training, or one policy that is asked.

Each goes on where an earlier sitting was stopped, and leaves what it makes whole or not at all. What only trainings
need is imported for them alone.
"""

from lab.reproduce.asking import ask
from lab.reproduce.design import Asked
from lab.reproduce.jobs import Job
from lab.reproduce.ledger import Figures
from lab.reproduce.study import Study
from lab.reproduce.waiting import beat
from lab.reproduce.worlds import asked_world


def do(study: Study, job: Job, *, processes: int = 1) -> Figures | None:
    """Do a job.

    Args:
        study: it belongs to.
        job: one of its jobs; what it needs is done.
        processes: that may share the supervised part.

    Returns:
        Its figures; None where it was interrupted (its state is saved then).

    Raises:
        SetupError: something cannot be used, or a file cannot be written.
    """
    if job.asked is not None and not (job.asked.dense or job.asked.reader):
        return _ask(study, job.asked, job.seed)
    import torch

    torch.set_num_threads(1)
    if job.asked is not None:
        return _ask(study, job.asked, job.seed)
    from lab.reproduce.training import start, train

    return train(study, job.training, job.seed) if job.training is not None else start(study, processes)


def _ask(study: Study, asked: Asked, seed: int) -> Figures:
    world = asked_world(study, asked.world, seed)
    policy, out = study.exported(asked.policy, seed), study.asked_folder(asked.name, seed)
    answers = ask(asked, world=world, policy=policy, out=out, show=lambda *_: beat())
    em = [one["em"] for one in answers.values()]
    return {"n": float(len(em)), "em": round(sum(em) / len(em), 4)}
