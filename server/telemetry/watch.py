"""Every run of this process, watched: an agent whose runs are told to observers and can all be asked to answer now.

It changes nothing of a run. The agent of a `Service` is a watched one, so every run of it is seen.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from time import perf_counter
from typing import Final

from agent.loop.agent import Agent
from agent.loop.budgets import Control
from agent.loop.recorder import Emit
from agent.sources.pages.errors import PageErrorKind
from agent.sources.pages.told import BLOCKED
from agent.trace import Delta, Event, Step, Trace
from server.auth.caller import Caller, caller

logger = logging.getLogger(__name__)

CAUSES: Final = frozenset({"client", "user", "server"})
"""Who ended a run: its client left, somebody called cancel (`task.cancel("user")`), or the server stops."""


@dataclass
class Run:
    """A run that goes on, as observers see it."""

    trace: Trace
    asking: Caller
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
    """Is told of every run. It must not wait; what it raises is logged and forgotten."""

    def began(self, run: Run) -> None:
        """It begins."""

    def spoke(self, run: Run) -> None:
        """The first word came."""

    def saw(self, run: Run, step: Step) -> None:
        """A step is done."""

    def blocked(self, run: Run, reason: PageErrorKind) -> None:
        """A page of its searches was not fetched."""

    def ended(self, run: Run) -> None:
        """It has ended, in whatever way."""

    async def aclose(self) -> None:
        """The server ends: send what was not sent yet."""


class Watch:
    """The runs that go on, and who is told of them."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self.observers: list[Observer] = list(observers)
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
        """Ask every run for its answer with what it has; to be called in their event loop."""
        for control in list(self._controls.values()):
            control.answer_now()

    def agent(self, agent: Agent) -> "WatchedAgent":
        """The same agent, watched; one that is watched already stays as it is, with this watch."""
        parts = {part.name: getattr(agent, part.name) for part in fields(Agent)}
        return WatchedAgent(**parts, watch=self)

    async def run(
        self, drive: Callable[[Emit, Control], Awaitable[Trace]], trace: Trace, emit: Emit, control: Control | None
    ) -> Trace:
        """Drive one run under watch."""
        run = Run(trace, caller(), control or Control())

        def tell(event: Event) -> None:
            if not isinstance(event, Delta):
                self._tell(lambda observer: observer.saw(run, event))
            elif run.first_token is None:
                run.first_token = perf_counter() - run.asking.began
                self._tell(lambda observer: observer.spoke(run))
            emit(event)

        token = BLOCKED.set(lambda reason: self._tell(lambda observer: observer.blocked(run, reason)))
        try:
            with self._open(run):
                return await drive(tell, run.control)
        finally:
            BLOCKED.reset(token)

    @contextmanager
    def _open(self, run: Run) -> Generator[None]:
        self._controls[id(run)] = run.control
        self._idle.clear()
        self._tell(lambda observer: observer.began(run))
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
            self._tell(lambda observer: observer.ended(run))

    def _tell(self, how: Callable[[Observer], None]) -> None:
        for observer in self.observers:
            try:
                how(observer)
            except Exception:  # telemetry that breaks must break no answer
                logger.exception("an observer of runs broke")


@dataclass(frozen=True)
class WatchedAgent(Agent):
    """An agent that tells its watch of every run. A copy with other parts (`replace`) is watched, too."""

    watch: Watch = field(default_factory=Watch, kw_only=True)

    async def run(self, trace: Trace, *, emit: Emit | None = None, control: Control | None = None) -> Trace:
        """Drive one rollout, as `Agent.run` does."""

        async def drive(tell: Emit, hand: Control) -> Trace:
            return await Agent.run(self, trace, emit=tell, control=hand)

        return await self.watch.run(drive, trace, emit or _tell_nobody, control)


def _tell_nobody(event: Event) -> None:
    """Nobody listens."""
