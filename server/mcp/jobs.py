"""Searches that outlive the call that started them, for clients that give up on slow tools: runs, as `/api/runs` has.

They lie in the store: any replica shows them, they are listed and belong to a key, and they are there after a crash.
"""

import time
from collections.abc import Iterable
from typing import Final, Literal

from pydantic import BaseModel, ValidationError

from agent.errors import QuestionError
from agent.rstool import EvidenceBundle, SizeBudget, bundle_of
from agent.trace import Step, Trace
from server.auth.keys import caller
from server.chat.service import MODEL
from server.evidence.sentences import step_sentence
from server.evidence.service import Search
from server.evidence.tools import JobState, State
from server.runs.manager import RunManager
from server.runs.restore import STEP, read_trace
from server.store import NewRun, RunRow

LATEST: Final = 8
_CANCEL_SECONDS: Final = 5.0


class SearchLimits(BaseModel):
    """What is kept beside the trace: the room that the evidence may take."""

    object: Literal["evidence"] = "evidence"
    max_chars: int
    max_tokens: int | None = None


class Jobs:
    """The searches that were started, as the caller may see them: with a key of a client, those that it started."""

    def __init__(self, run_manager: RunManager) -> None:
        self._run_manager = run_manager

    async def start(self, search: Search) -> JobState:
        """Let a search run on its own.

        Raises:
            ApiError: there is no slot for it.
            StoreError: it could not be written down; nothing was started.
        """
        slot, trace = await search.enter(), search.trace
        room = SearchLimits(max_chars=search.budget.chars, max_tokens=search.budget.tokens).model_dump_json()
        new = NewRun(trace, f"{MODEL}/{trace.protocol}", key_id=caller().key, metadata=lambda: room)
        try:
            run = await self._run_manager.start(new, search.drive, then=slot.leave)
        except BaseException:
            slot.leave()
            raise
        return await self._state(run.row())

    async def state(self, id: str, *, wait_seconds: float = 0.0) -> JobState:
        """How far it is, as soon as it has ended, or after so long.

        Raises:
            QuestionError: there is none.
            StoreError: it could not be read.
        """
        row, _ = await self._find(id, wait_seconds=wait_seconds)
        return await self._state(row)

    async def result(self, id: str, *, wait_seconds: float = 0.0) -> EvidenceBundle:
        """What it found.

        Raises:
            QuestionError: there is none, it runs still, or it was cancelled.
            StoreError: it could not be read.
        """
        row, room = await self._find(id, wait_seconds=wait_seconds)
        if row.running:
            raise QuestionError(f"the search {id} is still running; try again, with wait_seconds to wait until it ends")
        if row.state == "cancelled":
            raise QuestionError(f"the search {id} was cancelled; start a new one")
        trace = await self._trace(row)
        return bundle_of(trace, budget=SizeBudget(chars=room.max_chars, tokens=room.max_tokens))

    async def cancel(self, id: str) -> JobState:
        """End it, whichever replica runs it, and wait until engine and searches were let go.

        Raises:
            QuestionError: there is none.
            StoreError: its owner could not be reached.
        """
        row, _ = await self._find(id)
        if row.running:
            await self._run_manager.command(id, "cancel")
        return await self.state(id, wait_seconds=_CANCEL_SECONDS)

    async def _find(self, id: str, *, wait_seconds: float = 0.0) -> tuple[RunRow, SearchLimits]:
        known = id.isascii() and id.isalnum() and len(id) <= 128
        key = caller().key or None
        row = await self._run_manager.until_ended(id, key_id=key, seconds=wait_seconds) if known else None
        live = self._run_manager.live(id)
        room = _room(live.new.metadata() if live else await self._run_manager.store.reads.metadata(id)) if row else None
        if row is None or room is None:
            raise QuestionError(
                f"there is no search {id[:64]!r}: it was never started here, or it was removed", about="id"
            )
        return row, room

    async def _state(self, row: RunRow) -> JobState:
        steps = await self._steps(row)
        known: dict[str, State] = {"running": "running", "cancelled": "cancelled", "interrupted": "interrupted"}
        return JobState(
            id=row.id,
            state=known.get(row.state, "ended"),
            question=row.question,
            seconds=round(row.figures.seconds if not row.running else max(0.0, time.time() - row.created), 3),
            steps=len(steps),
            latest=tuple(step_sentence(step) for step in steps[-LATEST:]),
        )

    async def _steps(self, row: RunRow) -> list[Step]:
        """In the order in which they happened."""
        if row.running and self._run_manager.live(row.id) is None:  # of another replica
            look = await self._run_manager.store.reads.look(row.id)
            return [STEP.validate_json(step) for _, step in look.steps] if look else []
        return _in_order((await self._trace(row)).steps)

    async def _trace(self, row: RunRow) -> Trace:
        if live := self._run_manager.live(row.id):
            return live.trace
        stored = await self._run_manager.store.reads.trace(row.id)
        if stored is None:
            raise QuestionError(f"the search {row.id} was removed; start a new one", about="id")
        return read_trace(stored)


def _room(metadata: str) -> SearchLimits | None:
    """What was kept of a search; None where the run is none of ours."""
    try:
        return SearchLimits.model_validate_json(metadata)
    except ValidationError:
        return None


def _in_order(steps: Iterable[Step]) -> list[Step]:
    return sorted(steps, key=lambda step: step.seconds)
