"""A study from its beginning to its end: jobs in processes of their own, and a ledger of what is done.

A kill costs each running job what it did since its last state, and nothing else.
"""

import shutil
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import get_args

from agent.errors import CorpusError, SetupError
from agent.parallel.processes import preloaded
from agent.sources.corpus.folder import locked
from lab.reproduce.design import QuestionList
from lab.reproduce.evaluating import ANSWERS
from lab.reproduce.jobs import Job, answers_of, left_seconds, needed
from lab.reproduce.ledger import Figures, Ledger
from lab.reproduce.study import EXPORTED, LISTED, Study
from lab.reproduce.work import do
from lab.reproduce.worlds import evaluation_world

Say = Callable[[str], None]
_AGAIN = "run the same command again to continue"


class Unfinished(SetupError):
    """A study was begun and did not come to its end; what is done is kept."""


def reproduce(study: Study, jobs: Sequence[Job], *, processes: int, say: Say) -> Ledger:
    """Do what is not done of these jobs.

    Args:
        study: with its folder.
        jobs: in their order.
        processes: jobs at the same time, each in a process of its own on one core; 0: one after the other, in this one.
        say: hears a sentence when a job ends.

    Raises:
        Unfinished: a job failed (the others are done then), or it was interrupted.
        SetupError: something cannot be used, is of another plan, or another study writes there.
    """
    with alone(study):
        ledger = Ledger(study.out)
        waiting = needed([job for job in jobs if not is_done(study, job, ledger)])
        _worlds(study, waiting)
        ledger.write()
        _Going(study, jobs, waiting, ledger, say).go(processes)
    return ledger


@contextmanager
def alone(study: Study) -> Generator[None]:
    """While no other process writes to the study's folder.

    Raises:
        SetupError: one does, or it is no folder that can be written.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(study.out))
        except CorpusError as error:
            why = f"another study is writing to {study.out}; wait for its end, or name another --out"
            raise SetupError(why) from error
        except OSError as error:
            why = f"{study.out} cannot be used as a folder ({error.strerror}): name another --out"
            raise SetupError(why) from error
        yield


def is_done(study: Study, job: Job, ledger: Ledger) -> bool:
    """Whether a job is done and what it made is there.

    Raises:
        SetupError: it was begun by another plan.
    """
    if not ledger.is_done(job.name, job.plan):
        return False
    if (out := answers_of(study, job)) is not None:
        return (out / ANSWERS).exists()
    if job.real_set is not None:
        return study.index(job.real_set.name).is_dir()
    if job.kind == "lists":
        return all((study.lists(job.seed) / name / LISTED).exists() for name in get_args(QuestionList))
    folder = study.training_folder(job.training.name, job.seed) if job.training else study.out / "start"
    return (folder / EXPORTED / "cairn.json").exists()


def _worlds(study: Study, jobs: Sequence[Job]) -> None:
    """Make the worlds before the first job needs them, so that no two processes make the same one."""
    for job in jobs:
        if job.arm is not None:
            evaluation_world(study, job.arm.world, job.seed)


@dataclass
class _Going:
    """What waits, what runs, and what failed."""

    study: Study
    jobs: Sequence[Job]
    waiting: list[Job]
    ledger: Ledger
    say: Say
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """Job → why."""
    began: dict[str, float] = field(default_factory=dict[str, float])

    def go(self, processes: int) -> None:
        if processes:
            self._side_by_side(processes)
        else:
            while job := self._next():
                self._begin(job)
                self._end(job, lambda job=job: do(self.study, job))
        if self.failed:
            first, why = next(iter(self.failed.items()))
            raise Unfinished(f"{len(self.failed)} jobs failed or could not be done; {first}: {why}; {_AGAIN}")

    def _next(self) -> Job | None:
        """The first job that can be done now; those that never can are given up."""
        open_ones = {job.name for job in self.waiting} | set(self.began)
        for job in list(self.waiting):
            if lost := next((need for need in job.needs if need in self.failed), None):
                self.waiting.remove(job)
                self.failed[job.name] = f"{lost} failed"
            elif not open_ones & set(job.needs):
                self.waiting.remove(job)
                return job
        return None

    def _begin(self, job: Job) -> None:
        again = job.name in self.ledger.kept.jobs
        if job.arm is not None and not again:
            # Killed before it was written down, or of an unknown plan.
            shutil.rmtree(self.study.answers_folder(job.arm.name, job.seed), ignore_errors=True)
        self.ledger.begin(job.name, job.plan)
        self.began[job.name] = time.perf_counter()

    def _end(self, job: Job, result: Callable[[], Figures | None]) -> None:
        """Write down how a job ended.

        Raises:
            Unfinished: it was interrupted.
        """
        try:
            figures = result()
        except BrokenProcessPool:
            raise
        except Exception as error:  # noqa: BLE001 - whatever broke one arm must not cost the others
            self.failed[job.name] = str(error)
            self.say(f"{job.name}: failed: {error}")
            return
        finally:
            seconds = time.perf_counter() - self.began.pop(job.name)
        self.ledger.end(job.name, seconds, figures)
        if figures is None:
            raise Unfinished(f"interrupted, and saved: {_AGAIN}")
        done = sum(self.ledger.seconds(one.name) is not None for one in self.jobs)
        left = left_seconds(self.jobs, self.ledger) / 60
        shown = ", ".join(f"{name} {value:g}" for name, value in figures.items() if isinstance(value, float))
        self.say(f"{job.name}: {shown} ({seconds:.0f} s); {done} of {len(self.jobs)}, {left:.0f} core minutes left")

    def _side_by_side(self, processes: int) -> None:
        trainers = preloaded("lab.reproduce.training", "lab.reproduce.work")
        running: dict[Future[Figures | None], Job] = {}
        # Each job has a process of its own, so that nothing of it is left in memory.
        with ProcessPoolExecutor(processes, mp_context=trainers, max_tasks_per_child=1) as pool:
            try:
                while True:
                    while len(running) < processes and (job := self._next()):
                        self._begin(job)
                        running[pool.submit(do, self.study, job, processes=processes)] = job
                    if not running:
                        return
                    for ended in wait(running, return_when=FIRST_COMPLETED).done:
                        self._end(running.pop(ended), ended.result)
            except BrokenProcessPool as error:
                names = ", ".join(self.began) or "a job"
                raise Unfinished(f"a process died (killed, or out of memory) while {names} ran; {_AGAIN}") from error
            except KeyboardInterrupt as error:
                raise Unfinished(f"interrupted, and saved: {_AGAIN}") from error
            finally:
                pool.shutdown(cancel_futures=True)
