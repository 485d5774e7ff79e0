"""A run of this process while it goes on: what it said, how much of that is stored, and what its readers may see.

A step is shown when it is stored, and what was said after it waits for it. Text on its way is shown at once.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from agent.loop.budgets import Control
from agent.trace import Delta, Event, Stopped
from server.http.encoding import dumped
from server.runs.restore import Growth
from server.store import NewRun, RunFigures, RunRow, StepRow
from server.store.records import OpenBlock, RunCommand, figures_of
from server.store.writing import Ended, Gained

STOPPED = "the server was stopped"


class LiveRun:
    """One run. Everything happens in its event loop."""

    def __init__(self, new: NewRun, *, created: float) -> None:
        self.new = new
        self.trace = new.trace
        self.id = new.trace.id
        self.created = created
        self.control = Control()
        self.task: asyncio.Task[None] | None = None
        self.applied: set[RunCommand] = set()
        """The commands that were applied."""
        self.stopping = False
        """The server ends it: what would be reported as cancelled is reported as interrupted."""
        self.lost = False
        """Another process took it; nothing is written of it before its end."""
        self.over = False
        """Its end may be seen."""
        self.rows: list[StepRow] = []
        self.stored = 0
        """Steps that are in the store."""
        self.shown = 0
        """Steps that readers may see."""
        self.changed_since_stored = False
        self._open: list[tuple[str, str]] = []
        self._waiting: deque[Delta | int] = deque()
        """What was said after the first step that is not shown yet; a number is that step."""
        self._growth = Growth(new.trace)
        self._changed: asyncio.Event = asyncio.Event()

    def emit(self, event: Event) -> None:
        """Take in an event of the rollout."""
        self.changed_since_stored = True
        if isinstance(event, Delta):
            if self._waiting:
                self._waiting.append(event)
            else:
                _grow(self._open, event)
                self._wake()
            return
        if (
            isinstance(event, Stopped)
            and event.reason == "cancelled"
            and self.stopping
            and "cancel" not in self.applied
        ):
            event = event.model_copy(update={"reason": "interrupted", "detail": STOPPED})
            self.trace.steps[-1] = event  # the loop cannot know why it was cancelled
        row = StepRow(seq=len(self.rows) + 1, step=dumped(event), grown=dumped(self._growth.since()))
        self.rows.append(row)
        self._waiting.append(row.seq)

    @property
    def unstored(self) -> bool:
        """Whether steps wait for the store."""
        return self.stored < len(self.rows)

    @property
    def gained(self) -> Gained:
        """What the store does not have yet."""
        return Gained(steps=self.rows[self.stored :], open_block=self._last_block())

    @property
    def ended(self) -> Ended:
        """The whole run, once it has ended."""
        return Ended(trace=self.trace, steps=list(self.rows), stored=self.stored, metadata=self.new.metadata())

    @property
    def open_block(self) -> OpenBlock:
        """What readers may see of the text that is being written."""
        return OpenBlock(tuple(self._open))

    def show(self, seq: int) -> None:
        """Steps up to this number may be seen, and what was said after them."""
        before = self.shown
        while self._waiting and not (isinstance(self._waiting[0], int) and self._waiting[0] > seq):
            item = self._waiting.popleft()
            if isinstance(item, int):
                self.shown = item
                self._open.clear()
            else:
                _grow(self._open, item)
        if self.shown != before:
            self._wake()

    def finish(self) -> None:
        """Its end may be seen, and everything before it."""
        self.show(len(self.rows))
        self.over = True
        self._wake()

    def steps(self, *, after: int) -> Sequence[tuple[int, str]]:
        """The steps that may be seen, as (number, JSON)."""
        return [(row.seq, row.step) for row in self.rows[after : self.shown]]

    async def changed(self) -> None:
        """Wait until there is more to see."""
        await self._changed.wait()

    def row(self) -> RunRow:
        """The run as lists show it."""
        figures = figures_of(self.trace)
        answer, state = figures.pop("answer"), figures.pop("state")
        new, trace = self.new, self.trace
        return RunRow(
            id=self.id,
            conversation=trace.conversation,
            question=trace.question,
            answer=answer if self.over else None,
            origin="api",
            model=new.model,
            protocol=trace.protocol,
            policy=trace.policy,
            state=state if self.over else "running",
            key_id=new.key_id,
            created=self.created,
            ended=self.created + trace.timings.total if self.over else None,
            figures=RunFigures(**figures),
            mine=True,
        )

    def _last_block(self) -> OpenBlock:
        """What was said after the last step, whether it may be seen or not."""
        pieces = list(self._open)
        for item in self._waiting:
            if isinstance(item, int):
                pieces.clear()
            else:
                _grow(pieces, item)
        return OpenBlock(tuple(pieces))

    def _wake(self) -> None:
        """Wake all readers that wait; each waits again on an event of its own time."""
        self._changed.set()
        self._changed = asyncio.Event()


def _grow(pieces: list[tuple[str, str]], delta: Delta) -> None:
    if pieces and pieces[-1][0] == delta.role:
        pieces[-1] = (delta.role, pieces[-1][1] + delta.text)
    else:
        pieces.append((delta.role, delta.text))
