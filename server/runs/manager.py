"""The runs of this process: starts them as tasks of their own, writes them down, and applies commands to them.

It also ends the runs of processes that died, and removes what is older than it shall be. It knows no request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

from agent.loop.budgets import Control
from agent.loop.recorder import Emit
from agent.trace import Event, Stopped, Trace
from server.auth.keys import caller
from server.chat.service import CHAT_MODEL, MODEL
from server.http.encoding import dumped
from server.runs.live import LiveRun
from server.runs.restore import restored
from server.runs.writer import Writer
from server.store import NewRun, RunRow, RunStore, StepRow, StoreError
from server.store.database import Database
from server.store.deleted import forget
from server.store.records import RunCommand
from server.store.writing import PRUNED_AT_ONCE, Ended

logger = logging.getLogger(__name__)

_PRUNE_SECONDS: Final = 3600.0
_INTERRUPTED_AT_ONCE: Final = 20
"""Runs of the dead that are ended before the leases of the living are looked after again."""


Drive = Callable[[Emit, Control], Awaitable[object]]
"""Runs a rollout onto the trace of the run."""


@dataclass(frozen=True)
class Retention:
    """How long runs are kept; None: for ever."""

    days: float | None = None
    runs: int | None = None


class RunManager:
    """The runs of one process."""

    def __init__(
        self,
        store: RunStore,
        *,
        retention: Retention | None = None,
        command_seconds: float = 0.3,
        close_seconds: float = 5.0,
    ) -> None:
        """Keep runs in a store.

        Args:
            store: where they are kept.
            retention: how long.
            command_seconds: how often commands of other replicas are read, while there are runs.
            close_seconds: how long the last writes may take when the server ends.
        """
        self.store = store
        self.retention = retention or Retention()
        self.command_seconds = command_seconds
        self._close_seconds = close_seconds
        self._writer = Writer(store)
        self._live: dict[str, LiveRun] = {}
        self._orphans: set[str] = set()
        """Runs that were taken from processes that died, and are not ended yet."""
        self._maintaining: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._last_done: dict[str, float] = {}
        self._began = asyncio.Event()
        """Set when there is something to maintain."""

    async def open(self) -> None:
        """Open the store, and begin to look after it; a second time does nothing.

        Raises:
            StoreError: it cannot be used.
        """
        async with self._opening:
            await self.store.database.ready()
            if self._maintaining is None:
                self._maintaining = asyncio.create_task(self._maintain())

    async def start(self, new: NewRun, drive: Drive, *, then: Callable[[], None] = lambda: None) -> LiveRun:
        """Begin a run that goes on without its client.

        Args:
            new: what it is.
            drive: what runs.
            then: called when it has ended.

        Raises:
            StoreError: it could not be written down; nothing was started.
        """
        await self.open()
        run = LiveRun(new, created=await self.store.writes.begin(new))
        self._live[run.id] = run
        run.task = asyncio.create_task(self._run(run, drive, then))
        self._began.set()
        return run

    def live(self, id: str) -> LiveRun | None:
        """The run, where it is this process's and goes on."""
        return self._live.get(id)

    def keep(self, trace: Trace) -> None:
        """Write down a run that ended and that no client follows by its id. Never waits or raises."""
        if trace.id not in self._live:
            model = CHAT_MODEL if trace.protocol == "chat" else f"{MODEL}/{trace.protocol}"
            self.put(NewRun(trace=trace, model=model, key_id=caller().key))

    def put(self, run: NewRun) -> None:
        """The same, with all that there is to say of it."""
        self._writer.keep(run)

    async def put_away(self, run: NewRun, *, seconds: float) -> None:
        """Write down a run that ended, and wait until it is stored, so that it can be retrieved; but not for longer."""
        stored = asyncio.Event()
        self._writer.keep(replace(run, then=stored.set))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await stored.wait()

    async def command(self, id: str, command: RunCommand) -> bool:
        """Have a run cancelled, or answered with what it has; by whichever process runs it. False where it ended.

        Raises:
            StoreError: its owner could not be reached.
        """
        if run := self._live.get(id):
            self._apply(run, command)
            return True
        return await self.store.writes.command(id, command)

    async def get(self, id: str, *, key_id: str | None) -> RunRow | None:
        """One run, where it was started with this key.

        Raises:
            StoreError: it could not be read.
        """
        if (run := self._live.get(id)) and key_id in (None, run.new.key_id):
            return run.row()
        return await self.store.reads.get(id, key_id=key_id)

    async def until_ended(self, id: str, *, key_id: str | None, seconds: float) -> RunRow | None:
        """The run, as soon as it has ended, or as it is after so long; whichever process runs it.

        Raises:
            StoreError: it could not be read.
        """
        until = monotonic() + seconds
        while (row := await self.get(id, key_id=key_id)) and row.running and (left := until - monotonic()) > 0:
            with suppress(TimeoutError):
                if live := self.live(id):
                    async with asyncio.timeout(left):
                        await live.changed()
                else:
                    await asyncio.sleep(min(left, self.command_seconds))
        return row

    async def end(self) -> None:
        """End what still runs, as interrupted, and write down what is left; a second time does nothing."""
        for run in self._live.values():
            run.stopping = True
            if run.task is not None:
                run.task.cancel()
        await asyncio.gather(*(run.task for run in self._live.values() if run.task), return_exceptions=True)
        if self._maintaining is not None:
            self._maintaining.cancel()
            await asyncio.gather(self._maintaining, return_exceptions=True)
        await self._writer.aclose(seconds=self._close_seconds)

    async def aclose(self) -> None:
        """The same, and close the store."""
        await self.end()
        await self.store.aclose()

    async def _run(self, run: LiveRun, drive: Drive, then: Callable[[], None]) -> None:
        def emit(event: Event) -> None:
            run.emit(event)
            self._writer.changed(run)

        try:
            await drive(emit, run.control)
        except asyncio.CancelledError:
            pass  # the trace says who cancelled it
        except Exception:  # the boundary: whatever broke, the run has an end
            logger.exception("the rollout %s failed", run.id)
        finally:
            then()
            if run.trace.stopped is None:
                stopped = Stopped(reason="interrupted", detail="the run failed; the server's log has the details")
                run.trace.steps.append(stopped)
                run.emit(stopped)
            self._writer.ended(run, lambda: self._live.pop(run.id, None))

    def _apply(self, run: LiveRun, command: RunCommand) -> None:
        if command in run.applied:
            return
        run.applied.add(command)
        if command == "cancel" and run.task is not None:
            run.task.cancel("user")
        elif command == "answer_now":
            run.control.answer_now()

    async def _maintain(self) -> None:
        """Hold the leases, apply commands, end the runs of processes that died, and remove what is old."""
        fails = False
        while True:
            try:
                await self._look_after()
                fails = False
            except Exception as error:  # the boundary: without this task every lease of the process would run out
                if not fails:
                    bug = None if isinstance(error, StoreError) else error
                    logger.warning("runs cannot be looked after: %s", error, exc_info=bug)
                fails = True
            busy = bool(self._live or self._orphans) or (self._due("prune", every=_PRUNE_SECONDS) and not fails)
            await self._rest(self.command_seconds if busy else self.store.lease_seconds / 2)

    async def _look_after(self) -> None:
        """Each duty whose time has come.

        Raises:
            StoreError: the store failed; what was not done is still due.
        """
        lease = self.store.lease_seconds
        if self._live:
            if self._due("renew", every=lease / 4):
                commands = await self.store.writes.renew(list(self._live))
                self._done("renew")
            else:
                commands = await self.store.writes.commands()
            for id, command in commands.items():
                if run := self._live.get(id):
                    self._apply(run, command)
        if self._due("claim", every=lease / 2):
            taken = await self.store.writes.claim()
            self._orphans |= set(taken) - set(self._live)  # ours, where the store was away for longer than a lease
            self._done("claim")
        for id in list(self._orphans)[:_INTERRUPTED_AT_ONCE]:
            await self._interrupt(id)
            self._orphans.discard(id)
        if self._due("prune", every=_PRUNE_SECONDS):
            await forget(self.store.database)
            await self.store.reports.prune(days=self.retention.days, reports=self.retention.runs)
            removed = await self.store.writes.prune(days=self.retention.days, runs=self.retention.runs)
            if removed < PRUNED_AT_ONCE:
                self._done("prune")

    def _due(self, duty: str, *, every: float) -> bool:
        last = self._last_done.get(duty)
        return last is None or monotonic() - last >= every

    def _done(self, duty: str) -> None:
        self._last_done[duty] = monotonic()

    async def _rest(self, seconds: float) -> None:
        """Until it is time again, or the first run begins."""
        if self._live:
            await asyncio.sleep(seconds)
            return
        self._began.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._began.wait()
        except TimeoutError:
            return

    async def _interrupt(self, id: str) -> None:
        """End a run whose process died, with all that was stored of it.

        Raises:
            StoreError: the store failed; the run is still to be ended.
        """
        logger.warning("the run %s was interrupted: the server that ran it ended", id)
        look, begun = await self.store.reads.look(id), await self.store.reads.trace(id)
        if look is None or begun is None:
            return
        stored = await self.store.reads.grown(id)
        try:
            trace, added = restored(begun, stored, look.open_block)
        except StoreError as error:
            logger.error("the run %s is ended as it is: %s", id, error)
            await self.store.writes.abandon(id)
            return
        rows = [StepRow(seq=seq, step=step, grown="{}") for seq, (step, _) in enumerate(stored, start=1)]
        rows += [StepRow(seq=len(rows) + at, step=dumped(step), grown="{}") for at, step in enumerate(added, start=1)]
        await self.store.writes.finish([Ended(trace=trace, steps=rows, stored=len(stored), claimed=True)])


def memory_run_manager() -> RunManager:
    """Keeps runs in the memory of this process alone."""
    return RunManager(RunStore(Database("memory")))
