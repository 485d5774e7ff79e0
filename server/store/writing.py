"""What is written about runs. Each call is one transaction; a run is written by the process that holds its lease."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from sqlalchemy import CursorResult, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.trace import Trace
from server.store.database import Database
from server.store.records import NewRun, OpenBlock, Origin, StepRow, Wish, figures_of
from server.store.serial import dumped, storable
from server.store.tables import EVENTS, RUNS, now

_PRUNED_AT_ONCE: Final = 200


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
        row = _described(run.trace, model=run.model, key_id=run.key_id, origin="api") | {
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
            held = set((await connection.execute(own.with_for_update(read=True))).scalars())
            await _add_steps(connection, {run: gained[run].steps for run in held})
            if held:
                blocks = update(RUNS).where(RUNS.c.id == bindparam("run")).values(open_block=bindparam("block"))
                rows = [{"run": run, "block": storable(gained[run].open_block.as_json())} for run in held]
                await connection.execute(blocks, rows)
        return set(gained) - held

    async def finish(self, ended: Sequence[Ended]) -> None:
        """Runs ended; each gets its trace. What another process wrote of it, when our lease ran out, is replaced.

        Raises:
            StoreError: nothing of it was written.
        """
        async with self._database.writing() as connection:
            for run in ended:
                await self._finish(connection, run)

    async def keep(self, traces: Sequence[tuple[NewRun, str]]) -> None:
        """Runs that nobody followed by their id, when they have ended; each with its trace as JSON.

        Raises:
            StoreError: nothing of it was written.
        """
        into = (sqlite if self._database.dialect == "sqlite" else postgresql).insert(RUNS)
        async with self._database.writing() as connection:
            for run, trace in traces:
                row = _described(run.trace, model=run.model, key_id=run.key_id, origin="v1", dumped_trace=trace)
                row |= _figures(run.trace) | {
                    "created": self._now - run.trace.timings.total,
                    "ended": self._now,
                }
                await connection.execute(into.values(row).on_conflict_do_nothing(index_elements=["id"]))

    async def renew(self) -> dict[str, Wish]:
        """Hold on to every run of this process; gives what others wish of them, by run.

        Raises:
            StoreError: the leases were not renewed.
        """
        mine = (RUNS.c.owner == self._owner) & (RUNS.c.state == "running")
        async with self._database.writing() as connection:
            until = self._now + self._lease_seconds
            await connection.execute(update(RUNS).where(mine).values(lease_until=until))
            return await self._wishes(connection)

    async def wishes(self) -> dict[str, Wish]:
        """What others wish of the runs of this process.

        Raises:
            StoreError: it could not be read.
        """
        async with self._database.reading() as connection:
            return await self._wishes(connection)

    async def wish(self, run: str, wish: Wish) -> bool:
        """Tell the owner of a run what is wished; false where it runs no more. A cancel is not taken back.

        Raises:
            StoreError: it could not be written.
        """
        told = update(RUNS).where(RUNS.c.id == run, RUNS.c.state == "running", RUNS.c.wish != "cancel")
        running = select(RUNS.c.id).where(RUNS.c.id == run, RUNS.c.state == "running")
        async with self._database.writing() as connection:
            await connection.execute(told.values(wish=wish))
            return (await connection.execute(running)).first() is not None

    async def claim(self) -> list[str]:
        """Take the runs whose owners were not heard of; whoever claims them first has them.

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

    async def prune(self, *, days: float | None, runs: int | None) -> int:
        """Remove ended runs that are older than `days`, and the oldest ones beyond `runs`; gives how many.

        Raises:
            StoreError: the rest was not removed.
        """
        removed = 0
        ended = select(RUNS.c.number).where(RUNS.c.state != "running")
        if days is not None:
            removed += await self._remove(ended.where(RUNS.c.created < self._now - days * 86_400))
        if runs is not None:
            async with self._database.reading() as connection:
                surplus = (await connection.execute(select(func.count()).select_from(RUNS))).scalar_one() - runs
            if surplus > 0:
                removed += await self._remove(ended.order_by(RUNS.c.created).limit(surplus), most=surplus)
        if removed:
            await self._database.shrink()
        return removed

    async def _remove(self, which: Any, *, most: int | None = None) -> int:
        removed = 0
        while most is None or removed < most:
            share = _PRUNED_AT_ONCE if most is None else min(_PRUNED_AT_ONCE, most - removed)
            async with self._database.writing() as connection:
                numbers = list((await connection.execute(which.limit(share))).scalars())
                await connection.execute(delete(RUNS).where(RUNS.c.number.in_(numbers)))
            removed += len(numbers)
            if len(numbers) < share:
                break
        return removed

    async def _finish(self, connection: AsyncConnection, run: Ended) -> None:
        at = RUNS.c.id == run.trace.id
        owner = (await connection.execute(select(RUNS.c.owner).where(at).with_for_update())).scalar_one_or_none()
        if owner is None or (run.claimed and owner != self._owner):
            return
        stored = run.stored
        if owner != self._owner:
            await connection.execute(delete(EVENTS).where(EVENTS.c.run == run.trace.id))
            stored = 0
        await _add_steps(connection, {run.trace.id: run.steps[stored:]})
        values = _figures(run.trace) | {
            "trace": dumped(run.trace),
            "ended": self._now,
            "owner": self._owner,
            "lease_until": 0,
            "open_block": "[]",
            "wish": "",
        }
        await connection.execute(update(RUNS).where(at).values(values))

    async def _wishes(self, connection: AsyncConnection) -> dict[str, Wish]:
        wished = select(RUNS.c.id, RUNS.c.wish).where(
            RUNS.c.owner == self._owner, RUNS.c.state == "running", RUNS.c.wish != ""
        )
        return {row.id: row.wish for row in await connection.execute(wished)}


async def _add_steps(connection: AsyncConnection, steps: Mapping[str, Sequence[StepRow]]) -> None:
    rows = [
        {"run": run, "seq": row.seq, "step": row.step, "grown": row.grown} for run, new in steps.items() for row in new
    ]
    if rows:
        await connection.execute(insert(EVENTS), rows)


def _described(trace: Trace, *, model: str, key_id: str, origin: Origin, dumped_trace: str = "") -> dict[str, Any]:
    return {
        "id": trace.id,
        "conversation": storable(trace.conversation),
        "question": storable(trace.question),
        "origin": origin,
        "model": storable(model),
        "protocol": trace.protocol,
        "policy": storable(trace.policy),
        "key_id": key_id,
        "trace": dumped_trace or dumped(trace),
    }


def _figures(trace: Trace) -> dict[str, Any]:
    figures = figures_of(trace)
    answer = figures["answer"]
    return figures | {"answer": storable(answer) if answer is not None else None}
