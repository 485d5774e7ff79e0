"""Searches that outlive the call that started them, for clients that give up on slow tools. They live in this process.

An id is as good as a secret: nobody can guess it, and whoever has it may see and cancel the search.
"""

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal
from uuid import uuid4

from pydantic import BaseModel, Field

from agent.errors import QuestionError
from agent.rstool import EvidenceBundle
from agent.trace import Delta, Event
from server.errors import ApiError
from server.evidence.desk import Search
from server.evidence.told import told

logger = logging.getLogger(__name__)

State = Literal["running", "ended", "cancelled", "broken"]
LATEST: Final = 8


class JobState(BaseModel):
    """How far a search is."""

    id: str = Field(description="To ask for it again. Whoever has it may see and cancel the search.")
    state: State = Field(
        description="Only of one that ended there is a result. broken: it could not run; its result says why."
    )
    question: str
    seconds: float = Field(description="Since it was started, up to its end.")
    steps: int = Field(description="How many steps there were.")
    latest: tuple[str, ...] = Field(description="What the latest of them were.")


@dataclass
class Job:
    """One search, and its task."""

    search: Search
    id: str = field(default_factory=lambda: uuid4().hex)
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    steps: int = 0
    latest: deque[str] = field(default_factory=lambda: deque(maxlen=LATEST))
    task: asyncio.Task[EvidenceBundle] | None = None

    @property
    def state(self) -> State:
        if self.task is None or not self.task.done():
            return "running"
        if self.task.cancelled():
            return "cancelled"
        return "broken" if self.task.exception() else "ended"

    def told(self) -> JobState:
        return JobState(
            id=self.id,
            state=self.state,
            question=self.search.trace.question,
            seconds=round((self.ended or time.monotonic()) - self.began, 3),
            steps=self.steps,
            latest=tuple(self.latest),
        )

    def result(self) -> EvidenceBundle:
        """What it found.

        Raises:
            QuestionError: it runs still, or it will never have a result.
        """
        match self.state:
            case "ended" if self.task is not None:
                return self.task.result()
            case "running":
                raise QuestionError(
                    f"the search {self.id} still runs; ask again, with wait_seconds to wait for its end"
                )
            case "cancelled":
                raise QuestionError(f"the search {self.id} was cancelled; start another one")
            case _:
                error = self.task.exception() if self.task is not None else None
                if isinstance(error, ApiError):
                    raise error
                raise QuestionError(f"the search {self.id} broke; the server's log tells why")

    def see(self, event: Event) -> None:
        if not isinstance(event, Delta):
            self.steps += 1
            self.latest.append(told(event))


class Jobs:
    """The searches that were started, those that ended for a while, too."""

    def __init__(self, *, most_running: int = 32, most_kept: int = 256, keep_seconds: float = 900.0) -> None:
        """Keep nothing yet.

        Args:
            most_running: searches at once.
            most_kept: searches that are known, ended ones included; the oldest ended ones are forgotten first.
            keep_seconds: how long the result of one that ended can be asked for.
        """
        self._most_running = most_running
        self._most_kept = most_kept
        self._keep_seconds = keep_seconds
        self._jobs: dict[str, Job] = {}

    def start(self, search: Search) -> Job:
        """Let a search run on its own.

        Raises:
            QuestionError: too many run already.
        """
        self._forget()
        running = sum(job.state == "running" for job in self._jobs.values())
        if running >= self._most_running:
            raise QuestionError(f"{running} searches run already, as many as there may be; wait for one, or cancel one")
        job = Job(search)
        job.task = asyncio.create_task(self._run(job), name=f"search {job.id}")
        self._jobs[job.id] = job
        return job

    def get(self, id: str) -> Job:
        """The search of this id.

        Raises:
            QuestionError: there is none.
        """
        self._forget()
        if job := self._jobs.get(id):
            return job
        raise QuestionError(
            f"there is no search {id[:64]!r}: it was never started here, or its result was not fetched in time",
            about="id",
        )

    async def wait(self, job: Job, *, seconds: float) -> None:
        """Wait until it has ended, but not for longer."""
        if job.task is not None:
            await asyncio.wait({job.task}, timeout=seconds)

    async def cancel(self, job: Job) -> None:
        """End it, and wait until engine and searches were let go."""
        if job.task is not None:
            job.task.cancel("user")
            await asyncio.wait({job.task})

    async def aclose(self) -> None:
        """End all of them."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, job: Job) -> EvidenceBundle:
        try:
            return await job.search.run(job.see)
        except ApiError:  # refused, and its result will say why
            raise
        except Exception:
            logger.exception("the search %s broke", job.id)
            raise
        finally:
            job.ended = time.monotonic()

    def _forget(self) -> None:
        """Let go of results that nobody fetched in time, and of the oldest ones where there are too many."""
        ended = [job for job in self._jobs.values() if job.state != "running"]
        late = time.monotonic() - self._keep_seconds
        excess = len(self._jobs) - self._most_kept + 1
        for place, job in enumerate(ended):
            if place < excess or (job.ended or 0.0) < late:
                del self._jobs[job.id]
