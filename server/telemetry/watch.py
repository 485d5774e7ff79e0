"""The runs of this process: each is reported to observers, and all can be made to answer now.

This is the only wrapper between a request and the rollout of an agent. It changes nothing of the rollout.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, Protocol

from agent.loop.budgets import Control
from agent.loop.recorder import Emit
from agent.sources.pages.blocked import BLOCKED
from agent.sources.pages.errors import PageErrorKind
from agent.trace import Delta, Event, Step, Trace
from server.auth.keys import Caller, caller

logger = logging.getLogger(__name__)

CAUSES: Final = frozenset({"client", "user", "server"})
"""Who ended a run: its client left, a user cancelled it (`task.cancel("user")`), or the server stops."""


class Runnable(Protocol):
    """What a run drives: an agent, or a chat that does not search."""

    def run(self, trace: Trace, *, emit: Emit, control: Control) -> Awaitable[Trace]: ...


@dataclass
class WatchedRun:
    """A run that goes on, as observers see it."""

    trace: Trace
    caller: Caller
    control: Control
    began: float = field(default_factory=perf_counter)
    first_token: float | None = None
    """Seconds from the request to the first word."""
    took: float = 0.0
    """Seconds from begin to end, once it has ended."""
    cancelled: str = ""
    """One of `CAUSES`, where it was cancelled."""
    broke: bool = False
    """A bug ended it."""


class Observer:
    """Sees every run. It must not wait; what it raises is logged and forgotten."""

    def began(self, run: WatchedRun) -> None:
        """It begins."""

    def spoke(self, run: WatchedRun) -> None:
        """The first word came."""

    def saw(self, run: WatchedRun, step: Step) -> None:
        """A step is done."""

    def blocked(self, run: WatchedRun, reason: PageErrorKind) -> None:
        """A page of its searches was not fetched."""

    def ended(self, run: WatchedRun) -> None:
        """It has ended, in whatever way."""

    async def aclose(self) -> None:
        """The server ends: send what was not sent yet."""


class Watch:
    """The runs that go on."""

    def __init__(self) -> None:
        self.stopping = False
        """The server ends runs by itself from now on."""
        self._controls: dict[int, Control] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle(self) -> None:
        """Wait until no run is left."""
        await self._idle.wait()

    @property
    def active(self) -> int:
        return len(self._controls)

    def answer_now(self) -> None:
        """Have every run answer with what it has; to be called in their event loop."""
        for control in list(self._controls.values()):
            control.answer_now()

    async def run(
        self, rollout: Runnable, trace: Trace, emit: Emit, control: Control | None, *, observers: Sequence[Observer]
    ) -> Trace:
        """Drive one rollout.

        Args:
            rollout: what runs.
            trace: that it writes.
            emit: called with each of its events, after the observers.
            control: lets the user stop it.
            observers: that see the run.
        """
        run = WatchedRun(trace, caller(), control or Control())

        def report(event: Event) -> None:
            if not isinstance(event, Delta):
                _report(observers, lambda observer: observer.saw(run, event))
            elif run.first_token is None:
                run.first_token = perf_counter() - run.caller.began
                _report(observers, lambda observer: observer.spoke(run))
            emit(event)

        token = BLOCKED.set(lambda reason: _report(observers, lambda observer: observer.blocked(run, reason)))
        try:
            with self._open(run, observers):
                return await rollout.run(trace, emit=report, control=run.control)
        finally:
            BLOCKED.reset(token)

    @contextmanager
    def _open(self, run: WatchedRun, observers: Sequence[Observer]) -> Generator[None]:
        self._controls[id(run)] = run.control
        self._idle.clear()
        _report(observers, lambda observer: observer.began(run))
        try:
            yield
        except asyncio.CancelledError as error:
            said = error.args[0] if error.args else ""
            run.cancelled = "server" if self.stopping else said if said in CAUSES else "client"
            raise
        except Exception:
            run.broke = True
            raise
        finally:
            del self._controls[id(run)]
            if not self._controls:
                self._idle.set()
            run.took = perf_counter() - run.began
            _report(observers, lambda observer: observer.ended(run))


def _report(observers: Sequence[Observer], how: Callable[[Observer], None]) -> None:
    for observer in observers:
        try:
            how(observer)
        except Exception:  # telemetry that breaks must break no answer
            logger.exception("an observer of runs broke")
