"""The reports of this process that outlive their clients: started as tasks, stored as they grow, ended by commands."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from agent.report import Report, ReportEvent, Research
from agent.report.report import ReportState
from server.auth.keys import caller
from server.http.encoding import as_json, dumped
from server.http.stream import Put
from server.reports.card import ReportCard, ReportFigures
from server.store import RunStore, StoreError
from server.store.records import RunCommand
from server.store.reports import NewReport, ReportRow

logger = logging.getLogger(__name__)

END: Final = "end"
_LEASE_PART: Final = 4
_TRIES: Final = 5
_AGAIN_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 1.0


class LiveReport:
    """One report that is being researched here. Everything happens in its event loop."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.key_id = caller().key
        self.task: asyncio.Task[None] | None = None
        self.events: list[tuple[int, str, str]] = []
        """(number, name, JSON). What is used is kept once, as it was said last."""
        self.over = False
        self.stopping = False
        """The server ends it, and no user."""
        self.ending = False
        """Its end is being stored; it cannot be cancelled any more."""
        self.grew = False
        """A section ended since it was stored."""
        self._numbered = 0
        self._changed = asyncio.Event()

    def emit(self, event: ReportEvent) -> None:
        """Take in an event."""
        if event.kind == "used" and self.events and self.events[-1][1] == "used":
            self.events.pop()
        self.grew |= event.kind == "section_ended"
        if event.kind != "ended":  # `end` says it, once it is stored
            self.add(event.kind, dumped(event))

    def add(self, name: str, data: str) -> None:
        self._numbered += 1
        self.events.append((self._numbered, name, data))
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        await self._changed.wait()


class ReportManager:
    """Starts reports, and finds them again."""

    def __init__(self, store: RunStore, *, command_seconds: float = 0.5) -> None:
        """Keep reports in a store.

        Args:
            store: where they are kept.
            command_seconds: how often commands of other replicas are read.
        """
        self.store = store
        self._command_seconds = command_seconds
        self._live: dict[str, LiveReport] = {}
        self._researches: dict[str, Research] = {}

    def live(self, id: str) -> LiveReport | None:
        return self._live.get(id)

    async def researched(self, id: str) -> Report | None:
        """A report of this process as far as it goes."""
        research = self._researches.get(id)
        return await asyncio.to_thread(research.report) if research else None

    async def start(self, opened: Callable[[Callable[[ReportEvent], None]], Research]) -> ReportRow:
        """Begin a report that goes on without its client.

        Args:
            opened: gives the report, once it is known who listens to it.

        Raises:
            ApiError: it cannot be researched; StoreError where it could not be written down. Nothing was started.
        """
        waiting: list[ReportEvent] = []
        listener: list[Callable[[ReportEvent], None]] = [waiting.append]
        research = opened(lambda event: listener[0](event))
        live = LiveReport(research.id)
        listener[0] = live.emit
        await self.store.database.ready()
        question = research.plan.question
        report = dumped(research.report())
        row = await self.store.reports.begin(NewReport(live.id, question, live.key_id, report, research.libraries))
        # Nothing can fail from here on: a client that hears of a failure starts another report.
        self._live[live.id], self._researches[live.id] = live, research
        live.task = asyncio.create_task(self._run(live, research))
        return row

    async def command(self, id: str, command: RunCommand) -> None:
        """Have a report cancelled, or written with what it has, by whichever process researches it.

        Raises:
            StoreError: its owner could not be reached.
        """
        if id in self._live:
            self._apply(id, command)
        else:
            await self.store.reports.command(id, command)

    async def end(self) -> None:
        """End what still runs, as interrupted; a second time does nothing."""
        tasks = [live.task for live in self._live.values() if live.task]
        for live in self._live.values():
            live.stopping = True
            if live.task and not live.ending:
                live.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _apply(self, id: str, command: RunCommand) -> None:
        live, research = self._live[id], self._researches[id]
        if command == "cancel" and live.task and not live.ending:
            live.task.cancel()
        elif command == "answer_now":
            research.answer_now()

    async def _run(self, live: LiveReport, research: Research) -> None:
        """Research it to its end, and store it as it grows and as it ends."""
        researched = asyncio.Event()
        looking = asyncio.create_task(self._look_after(live, research, researched))
        state: ReportState = "failed"
        report: Report | None = None
        try:
            report = await research.run()
        except asyncio.CancelledError:
            state = "interrupted" if live.stopping else "cancelled"
        except Exception:  # the boundary: whatever broke, the report has an end
            logger.exception("the report %s failed", live.id)
        finally:
            live.ending = True
            researched.set()
            # A transaction that is cancelled on its way may keep its lock, and the end could not be stored.
            await asyncio.wait([looking], timeout=_TRIES * _AGAIN_SECONDS)
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            await self._finish(live, report or await asyncio.to_thread(research.report, state))

    async def _finish(self, live: LiveReport, report: Report) -> None:
        try:
            await self._stored(live, report, state=report.state)
        finally:
            self._live.pop(live.id, None)
            self._researches.pop(live.id, None)
            row = None
            with suppress(StoreError):
                row = await self.store.reports.get(live.id, key_id=None)
            live.add(END, dumped(ReportCard.of(row)) if row else as_json({"id": live.id, "state": report.state}))
            live.over = True

    async def _stored(self, live: LiveReport, report: Report, *, state: ReportState) -> None:
        """Store its end; a store that fails is tried again for a few seconds."""
        figures = dumped(ReportFigures.of(report))
        for left in reversed(range(1 if live.stopping else _TRIES)):
            try:
                await self.store.reports.save(live.id, dumped(report), figures, state=state)
            except StoreError as error:
                logger.warning("the report %s could not be stored: %s", live.id, error)
                if left:
                    await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return

    async def _look_after(self, live: LiveReport, research: Research, researched: asyncio.Event) -> None:
        """Until it is researched: hold its lease, apply commands of other replicas, store the sections that ended."""
        renewed = 0.0
        clock = asyncio.get_running_loop().time
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(researched.wait(), self._command_seconds)
            if researched.is_set():
                return
            try:
                if live.grew:
                    await self._save(live, research)
                if clock() - renewed >= min(self.store.lease_seconds / _LEASE_PART, 2 * self._command_seconds):
                    for command in (await self.store.reports.renew([live.id])).values():
                        self._apply(live.id, command)
                    renewed = clock()
            except StoreError as error:
                logger.warning("the report %s cannot be looked after: %s", live.id, error)

    async def _save(self, live: LiveReport, research: Research) -> None:
        """Store it as far as it goes.

        Raises:
            StoreError: it was not stored; it is to be stored again.
        """
        live.grew = False  # before it is written: another section may end meanwhile
        report = await asyncio.to_thread(research.report)
        try:
            await self.store.reports.save(live.id, dumped(report), dumped(ReportFigures.of(report)))
        except StoreError:
            live.grew = True
            raise


async def follow(
    manager: ReportManager, id: str, after: int, put: Put, *, key_id: str | None, stops: Callable[[], bool]
) -> bool:
    """Put every event of a report after that number, down to its end; false where the reader must come again.

    Of a report that another replica researches, its card comes whenever it changes.

    Raises:
        StoreError: it cannot be read.
    """
    live = manager.live(id)
    while live:
        for number, name, data in live.events:
            if number > after:
                after = number
                put(_frame(name, data, id=END if name == END else str(number)))
        if live.over:
            return True
        await live.changed()
    shown = ""
    while (row := await manager.store.reports.get(id, key_id=key_id)) is not None:
        card = dumped(ReportCard.of(row))
        if not row.running:
            put(_frame(END, card, id=END))
            return True
        if card != shown:
            put(_frame("card", card, id="0"))
            shown = card
        if stops():
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def _frame(event: str, data: str, *, id: str) -> bytes:
    return f"id: {id}\nevent: {event}\ndata: {data}\n\n".encode()
