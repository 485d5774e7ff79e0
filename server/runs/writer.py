"""Brings runs to the store, many in one transaction. What the store does not take now is kept and brought again.

A store that fails holds up no answer: after a moment's patience steps are shown that are not stored yet.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

from server.http.encoding import dumped
from server.runs.live import LiveRun
from server.store import NewRun, RunStore, StoreError

logger = logging.getLogger(__name__)

_BLOCK_SECONDS: Final = 0.25
"""How old the stored text of an open block may be."""
_LONGEST_WAIT_SECONDS: Final = 2.0
_MOST_WAITING: Final = 2_000
"""Traces that wait for a store that fails or is too slow; beyond that the oldest are given up, which the log says."""
_TOGETHER: Final = 50
_KEPT_SECONDS: Final = 0.1
"""Between transactions of runs that no one waits for: each costs the loop as much as a short answer does."""


class Writer:
    """Writes what the runs of this process say, in a task of its own that begins with the first of it."""

    def __init__(self, store: RunStore, *, patience_seconds: float = 2.0) -> None:
        """Write to a store.

        Args:
            store: where to.
            patience_seconds: how long steps wait for a store that fails before they are shown all the same.
        """
        self._store = store
        self._patience_seconds = patience_seconds
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._live: dict[str, LiveRun] = {}
        self._ended: dict[str, tuple[LiveRun, Callable[[], object]]] = {}
        self._kept: dict[str, NewRun] = {}
        self._bringing: Sequence[LiveRun] = ()
        """Whose steps are on their way to the store."""
        self._kept_at = -_KEPT_SECONDS
        """When the last of them were brought, on the clock of `time.monotonic`."""
        self._due: asyncio.TimerHandle | None = None
        self._failing_since: float | None = None
        self._closing = False

    def changed(self, run: LiveRun) -> None:
        """The run said something."""
        self._live[run.id] = run
        if run.unstored:
            if self._out_of_patience:
                run.show(len(run.rows))
            self._work()
        else:
            self._work_soon(_BLOCK_SECONDS)

    def ended(self, run: LiveRun, then: Callable[[], object]) -> None:
        """The run ended; `then` is called when all of it is stored."""
        self._live.pop(run.id, None)
        self._ended[run.id] = (run, then)
        if self._out_of_patience:
            run.finish()
        self._work()

    def keep(self, run: NewRun) -> None:
        """A run ended that no client follows."""
        self._kept[run.trace.id] = run
        if len(self._kept) > _MOST_WAITING:
            lost = next(iter(self._kept))
            del self._kept[lost]
            logger.error("the run %s was not stored: too many wait for a store that fails or is too slow", lost)
        if run.waited_for or self._closing or monotonic() - self._kept_at >= _KEPT_SECONDS:
            self._work()
        else:
            self._work_soon(_KEPT_SECONDS)

    async def aclose(self, *, seconds: float) -> None:
        """Bring what is left, for so long at most."""
        self._closing = True
        self._wake.set()
        self._rest()
        task, self._task = self._task, None  # closed once, however often it is called
        if task is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(task)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for lost in [*self._ended, *self._kept]:
            logger.error("the run %s was not stored before the server ended", lost)

    @property
    def _out_of_patience(self) -> bool:
        return self._failing_since is not None and monotonic() - self._failing_since >= self._patience_seconds

    def _rest(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _work_soon(self, seconds: float) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(seconds, self._work)

    def _work(self) -> None:
        self._rest()
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write())

    async def _write(self) -> None:
        wait = 0.05
        while not self._closing or self._ended or self._kept:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._bring()
            except Exception as error:  # noqa: BLE001 - whatever broke, what is here is brought again
                self._failed(error)
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
                self._wake.set()
            else:
                if self._failing_since is not None:
                    logger.warning("the store takes runs again")
                self._failing_since, wait = None, 0.05

    async def _bring(self) -> None:
        """One of each kind of transaction, where there is something to write.

        Raises:
            StoreError: what was not written is still here.
        """
        await self._in_time(self._append())
        if self._ended:
            await self._in_time(self._finish(list(self._ended.values())[:_TOGETHER]))
        if self._kept:
            await self._in_time(self._store_kept(list(self._kept.values())[:_TOGETHER]))
        hurried = len(self._kept) >= _TOGETHER or any(run.waited_for for run in self._kept.values())
        if self._ended or self._closing or hurried:
            self._wake.set()  # after the steps that came meanwhile, for which readers wait
        elif self._kept:
            self._work_soon(_KEPT_SECONDS)

    async def _in_time(self, transaction: Awaitable[None]) -> None:
        """Wait for it, and let readers go on where that takes longer than they should wait."""
        late = asyncio.get_running_loop().call_later(self._patience_seconds, self._too_slow)
        try:
            await transaction
        finally:
            late.cancel()

    async def _append(self) -> None:
        runs = [run for run in self._live.values() if run.changed_since_stored and not run.lost]
        for run in self._live.values():
            if run.lost:
                run.show(len(run.rows))
        self._live.clear()
        if not runs:
            return
        for run in runs:
            run.changed_since_stored = False
        self._bringing = runs
        try:
            await self._append_all(runs)
        except BaseException:
            for run in runs:
                run.changed_since_stored = True
                if run.id not in self._ended:
                    self._live[run.id] = run
            raise
        finally:
            self._bringing = ()

    async def _append_all(self, runs: Sequence[LiveRun]) -> None:
        """Bring what these runs gained, together; one that the store refuses holds up no other."""
        gained = {run.id: run.gained for run in runs}
        try:
            lost = await self._store.writes.append(gained)
        except StoreError as error:
            if error.kind != "refused":
                raise
            if len(runs) > 1:
                for one in runs:
                    await self._append_all([one])
                return
            logger.error("the steps of the run %s cannot be stored: %s", runs[0].id, error)
            lost = {runs[0].id}
        else:
            for id in lost:
                logger.warning("the run %s was deleted, or taken by a server that had not heard of this one", id)
        for run in runs:
            if run.id in lost:
                run.lost = True
            run.stored += 0 if run.lost else len(gained[run.id].steps)
            run.show(len(run.rows) if run.lost else run.stored)

    async def _finish(self, ended: Sequence[tuple[LiveRun, Callable[[], object]]]) -> None:
        try:
            await self._store.writes.finish([run.ended for run, _ in ended])
        except StoreError as error:
            if error.kind != "refused":
                raise
            if len(ended) > 1:
                for one in ended:
                    await self._finish([one])
                return
            logger.error("the run %s cannot be stored: %s", ended[0][0].id, error)
        for run, then in ended:
            self._ended.pop(run.id, None)
            run.finish()
            then()

    async def _store_kept(self, kept: Sequence[NewRun]) -> None:
        rows = await asyncio.to_thread(lambda: [(run, dumped(run.trace)) for run in kept])
        try:
            await self._store.writes.keep(rows)
        except StoreError as error:
            if error.kind != "refused":
                raise
            if len(kept) > 1:
                for one in kept:
                    await self._store_kept([one])
                return
            logger.error("the run %s cannot be stored: %s", kept[0].trace.id, error)
        for run in kept:
            self._kept.pop(run.trace.id, None)
            run.then()
        self._kept_at = monotonic()

    def _failed(self, error: Exception) -> None:
        """Say so once, and let readers go on after a while."""
        if self._failing_since is None:
            self._failing_since = monotonic()
            bug = None if isinstance(error, StoreError) else error
            logger.warning("%s; runs continue and are stored when it works again", error, exc_info=bug)
        if self._out_of_patience:
            self._show_all()

    def _too_slow(self) -> None:
        """The store neither takes what is brought nor says that it fails."""
        if not (self._live or self._bringing or self._ended):
            return  # no one waits
        if self._failing_since is None:
            logger.warning("the store does not answer; runs continue and are stored when it works again")
        self._failing_since = monotonic() - self._patience_seconds
        self._show_all()

    def _show_all(self) -> None:
        """Readers wait for the store no longer."""
        for run in [*self._live.values(), *self._bringing]:
            run.show(len(run.rows))
        for run, _ in self._ended.values():
            run.finish()
