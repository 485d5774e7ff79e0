"""What is written about runs. Each call is one transaction; a run is written by the process that holds its lease."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, cast

from sqlalchemy import CursorResult, Select, Table, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.trace import Trace
from server.http.encoding import dumped
from server.store.database import Database
from server.store.deleted import erased, purge_words
from server.store.records import NewRun, OpenBlock, Origin, RunCommand, StepRow, figures_of
from server.store.serial import storable
from server.store.tables import EVENTS, RUNS, now

PRUNED_AT_ONCE: Final = 200
"""A process that prunes must still find the time to hold its leases."""


@dataclass(frozen=True)
class Gained:
    """What one run gained since it was last written."""

    steps: Sequence[StepRow]
    open_block: OpenBlock


@dataclass(frozen=True)
class Ended:
    """A run that ended here."""

    trace: Trace
    steps: Sequence[StepRow]
    """All of them, from the first."""
    stored: int
    """How many of them are stored already."""
    claimed: bool = False
    """It was another process's that died; should that one live after all, its own end of the run stands."""
    metadata: str | None = None
    """What is kept beside the trace from now on; None: what was."""


class RunWrites:
    """Writes runs on behalf of one process."""

    def __init__(self, database: Database, *, owner: str, lease_seconds: float) -> None:
        """Write to a database.

        Args:
            database: where to.
            owner: id of this process.
            lease_seconds: how long a run is this process's without word of it.
        """
        self._database = database
        self._owner = owner
        self._lease_seconds = lease_seconds
        self._now = now(database.dialect)

    async def begin(self, run: NewRun) -> float:
        """A run begins; it is this process's. Gives when, in seconds since 1970.

        Raises:
            StoreError: it could not be written.
        """
        row = _described(run, origin="api", trace=dumped(run.trace)) | {
            "state": "running",
            "owner": self._owner,
            "lease_until": self._now + self._lease_seconds,
            "created": self._now,
        }
        async with self._database.writing() as connection:
            begun = await connection.execute(insert(RUNS).values(row).returning(RUNS.c.created))
            return begun.scalar_one()

    async def append(self, gained: Mapping[str, Gained]) -> set[str]:
        """New steps and open blocks of several runs. Gives the runs that are this process's no more.

        Raises:
            StoreError: nothing of it was written.
        """
        async with self._database.writing() as connection:
            own = select(RUNS.c.id).where(RUNS.c.id.in_(gained), RUNS.c.owner == self._owner, RUNS.c.state == "running")
            in_turn = own.order_by(RUNS.c.number).with_for_update(read=True)  # or two writers wait for each other
            held = set((await connection.execute(in_turn)).scalars())
            await self._add_steps(connection, {run: gained[run].steps for run in held})
            if held:
                blocks = update(RUNS).where(RUNS.c.id == bindparam("run")).values(open_block=bindparam("block"))
                rows = [{"run": run, "block": storable(gained[run].open_block.as_json())} for run in held]
                await connection.execute(blocks, rows)
        return set(gained) - held

    async def finish(self, ended: Sequence[Ended]) -> None:
        """Runs ended; each gets its trace. What another process wrote of it, when our lease ran out, is replaced.

        One that began while a library that it searches was deleted with its runs is removed.

        Raises:
            StoreError: nothing of it was written.
        """
        async with self._database.writing() as connection:
            gone = await erased(connection, _searched_by(run.trace for run in ended))
            rows = select(RUNS.c.id, RUNS.c.owner).where(RUNS.c.id.in_([run.trace.id for run in ended]))
            in_turn = await connection.execute(rows.order_by(RUNS.c.number).with_for_update())
            owners: dict[str, str] = {row.id: row.owner for row in in_turn}
            for run in ended:
                await self._finish(connection, run, owner=owners.get(run.trace.id), gone=gone)
            if gone:
                await purge_words(connection)

    async def keep(self, traces: Sequence[tuple[NewRun, str]]) -> None:
        """Runs that no client followed by their id, when they have ended; each with its trace as JSON.

        Those that searched a library which was deleted with its runs are not kept.

        Raises:
            StoreError: nothing of it was written.
        """
        times = {"created": self._now - bindparam("took"), "ended": self._now}
        into = self._insert(RUNS).values(times).on_conflict_do_nothing(index_elements=["id"])
        async with self._database.writing() as connection:
            gone = await erased(connection, _searched_by(run.trace for run, _ in traces))
            rows = [
                _described(run, origin="v1", trace=trace) | _figures(run.trace) | {"took": run.trace.timings.total}
                for run, trace in traces
                if gone.isdisjoint(run.trace.libraries)
            ]
            if rows:
                await connection.execute(into, rows)  # at once: each statement waits for a turn of a loop that is busy

    async def renew(self, runs: Collection[str]) -> dict[str, RunCommand]:
        """Hold on to these runs of this process; gives what others request of them, by run.

        What is not named here, although this process once began or took it, runs nowhere: its lease ends.

        Raises:
            StoreError: the leases were not renewed.
        """
        mine = select(RUNS.c.number).where(RUNS.c.id.in_(runs), RUNS.c.owner == self._owner, RUNS.c.state == "running")
        async with self._database.writing() as connection:
            in_turn = await connection.execute(mine.order_by(RUNS.c.number).with_for_update())
            held = update(RUNS).where(RUNS.c.number.in_(list(in_turn.scalars())))
            await connection.execute(held.values(lease_until=self._now + self._lease_seconds))
            return await self._commands(connection)

    async def commands(self) -> dict[str, RunCommand]:
        """What others request of the runs of this process.

        Raises:
            StoreError: it could not be read.
        """
        async with self._database.reading() as connection:
            return await self._commands(connection)

    async def command(self, run: str, command: RunCommand) -> bool:
        """Leave a command for the owner of a run; false where it runs no more. A cancel is not taken back.

        Raises:
            StoreError: it could not be written.
        """
        open_to_it = update(RUNS).where(RUNS.c.id == run, RUNS.c.state == "running", RUNS.c.wish != "cancel")
        running = select(RUNS.c.id).where(RUNS.c.id == run, RUNS.c.state == "running")
        async with self._database.writing() as connection:
            await connection.execute(open_to_it.values(wish=command))
            return (await connection.execute(running)).first() is not None

    async def claim(self) -> list[str]:
        """Take the runs whose owners were not heard of; the first process to claim them has them.

        Raises:
            StoreError: none was taken.
        """
        orphaned = select(RUNS.c.id).where(RUNS.c.state == "running", RUNS.c.lease_until < self._now)
        async with self._database.reading() as connection:
            if (await connection.execute(orphaned.limit(1))).first() is None:
                return []
        async with self._database.writing() as connection:
            found = list((await connection.execute(orphaned.with_for_update(skip_locked=True))).scalars())
            values = {"owner": self._owner, "lease_until": self._now + self._lease_seconds}
            await connection.execute(update(RUNS).where(RUNS.c.id.in_(found)).values(values))
        return found

    async def delete(self, run: str) -> bool:
        """Remove a run that has ended, with its events; false where there is none.

        Raises:
            StoreError: it was not removed.
        """
        async with self._database.writing() as connection:
            gone = await connection.execute(delete(RUNS).where(RUNS.c.id == run, RUNS.c.state != "running"))
            return cast(CursorResult[Any], gone).rowcount > 0

    async def abandon(self, run: str) -> None:
        """End a run that was taken and cannot be read, as interrupted, and leave the rest of it as it is.

        Raises:
            StoreError: it was not ended.
        """
        taken = update(RUNS).where(RUNS.c.id == run, RUNS.c.owner == self._owner, RUNS.c.state == "running")
        async with self._database.writing() as connection:
            await connection.execute(taken.values(state="interrupted", ended=self._now, lease_until=0, wish=""))

    async def prune(self, *, days: float | None, runs: int | None, most: int = PRUNED_AT_ONCE) -> int:
        """Remove ended runs that are older than `days`, and the oldest ones beyond `runs`, a bounded number at once.

        Servers that do it at the same time remove the same runs, and not twice as many.

        Returns:
            How many; as long as it is `most`, there may be more.

        Raises:
            StoreError: they were not removed.
        """
        removed = 0
        ended = select(RUNS.c.number).where(RUNS.c.state != "running")
        if days is not None:
            removed += await self._remove(ended.where(RUNS.c.created < self._now - days * 86_400), most=most)
        if runs is not None and removed < most:
            async with self._database.reading() as connection:
                running = select(func.count()).select_from(RUNS).where(RUNS.c.state == "running")
                kept = max(0, runs - (await connection.execute(running)).scalar_one())
            latest_first = ended.order_by(RUNS.c.created.desc(), RUNS.c.id.desc())
            removed += await self._remove(latest_first.offset(kept), most=most - removed)
        if removed:
            await self._database.shrink()
        return removed

    async def _remove(self, which: Select[tuple[int]], *, most: int) -> int:
        async with self._database.writing() as connection:
            numbers = list((await connection.execute(which.limit(most))).scalars())
            gone = await connection.execute(delete(RUNS).where(RUNS.c.number.in_(numbers)))
            return cast(CursorResult[Any], gone).rowcount

    async def _finish(self, connection: AsyncConnection, run: Ended, *, owner: str | None, gone: Set[str]) -> None:
        if owner is None or (run.claimed and owner != self._owner):
            return
        if not gone.isdisjoint(run.trace.libraries):
            await connection.execute(delete(RUNS).where(RUNS.c.id == run.trace.id))
            return
        stored = run.stored
        if owner != self._owner:
            await connection.execute(delete(EVENTS).where(EVENTS.c.run == run.trace.id))
            stored = 0
        await self._add_steps(connection, {run.trace.id: run.steps[stored:]})
        values = (
            _figures(run.trace)
            | {
                "trace": dumped(run.trace),
                "ended": self._now,
                "owner": self._owner,
                "lease_until": 0,
                "open_block": "[]",
                "wish": "",
            }
            | ({} if run.metadata is None else {"aside": storable(run.metadata)})
        )
        await connection.execute(update(RUNS).where(RUNS.c.id == run.trace.id).values(values))

    async def _add_steps(self, connection: AsyncConnection, steps: Mapping[str, Sequence[StepRow]]) -> None:
        """Those that are there stay: a commit whose answer was lost on its way is brought again."""
        rows = [
            {"run": run, "seq": row.seq, "step": row.step, "grown": row.grown}
            for run, new in steps.items()
            for row in new
        ]
        if rows:
            await connection.execute(self._insert(EVENTS).on_conflict_do_nothing(), rows)

    def _insert(self, table: Table) -> Any:
        """An insert of this database, which knows what to do with a row that is there."""
        return (sqlite if self._database.dialect == "sqlite" else postgresql).insert(table)

    async def _commands(self, connection: AsyncConnection) -> dict[str, RunCommand]:
        commanded = select(RUNS.c.id, RUNS.c.wish).where(
            RUNS.c.owner == self._owner, RUNS.c.state == "running", RUNS.c.wish != ""
        )
        return {row.id: row.wish for row in await connection.execute(commanded)}


def _searched_by(traces: Iterable[Trace]) -> set[str]:
    return {library for trace in traces for library in trace.libraries}


def _described(run: NewRun, *, origin: Origin, trace: str) -> dict[str, Any]:
    return {
        "id": run.trace.id,
        "conversation": storable(run.trace.conversation),
        "question": storable(run.trace.question),
        "origin": origin,
        "model": storable(run.model),
        "protocol": run.trace.protocol,
        "policy": storable(run.trace.policy),
        "key_id": run.key_id,
        "libraries": " ".join(run.trace.libraries),
        "trace": trace,
        "aside": storable(run.metadata()),
    }


def _figures(trace: Trace) -> dict[str, Any]:
    figures = figures_of(trace)
    answer = figures["answer"]
    return figures | {"answer": storable(answer) if answer is not None else None}
