"""What is kept of reports: each is written by the process that holds its lease, and read by all."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, Row, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.outbound.numbers import amount
from server.store.database import Database
from server.store.deleted import erased
from server.store.reading import LAST_SECOND
from server.store.records import RunCommand
from server.store.serial import read_text, storable
from server.store.tables import REPORTS, now


@dataclass(frozen=True)
class NewReport:
    """A report that begins."""

    id: str
    question: str
    key_id: str
    report: str
    """As JSON."""
    libraries: tuple[str, ...] = ()
    """Ids of those that it searches."""


@dataclass(frozen=True)
class ReportRow:
    """A report as lists show it."""

    id: str
    question: str
    state: str
    created: float
    ended: float | None
    figures: str
    """As JSON, in the API's own form."""
    mine: bool
    """Whether this process writes it."""

    @property
    def running(self) -> bool:
        return self.state == "running"


class StoredReports:
    """Reports in one database, on behalf of one process."""

    def __init__(self, database: Database, *, owner: str, lease_seconds: float) -> None:
        self._database = database
        self._owner = owner
        self._lease_seconds = lease_seconds

    async def begin(self, new: NewReport) -> ReportRow:
        """Write down a report that begins; gives it as lists show it.

        Raises:
            StoreError: it was not written.
        """
        values = {
            "id": new.id,
            "question": storable(new.question),
            "state": "running",
            "owner": self._owner,
            "lease_until": self._now + self._lease_seconds,
            "key_id": new.key_id,
            "created": self._now,
            "report": storable(new.report),
            "libraries": " ".join(new.libraries),
        }
        async with self._database.writing() as connection:
            await connection.execute(insert(REPORTS).values(values))
            return self._row((await connection.execute(select(*_LISTED).where(REPORTS.c.id == new.id))).one())

    async def save(self, id: str, report: str, figures: str, *, state: str = "running") -> None:
        """Write a report as it is now; with another state it has ended, and nothing is written of it any more.

        One that began while a library that it searches was deleted with its reports is removed.

        Raises:
            StoreError: it was not written.
        """
        values: dict[str, Any] = {"report": storable(report), "figures": storable(figures), "state": state}
        if state != "running":
            values |= {"ended": self._now, "lease_until": 0, "command": ""}
        mine = update(REPORTS).where(REPORTS.c.id == id, *self._unended)
        libraries = select(REPORTS.c.libraries).where(REPORTS.c.id == id)
        async with self._database.writing() as connection:
            searched = read_text((await connection.execute(libraries)).scalar_one_or_none() or "")
            if await erased(connection, searched.split()):
                await connection.execute(delete(REPORTS).where(REPORTS.c.id == id))
            else:
                await connection.execute(mine.values({"ended": None, **values}))

    async def renew(self, ids: Collection[str]) -> dict[str, RunCommand]:
        """Hold on to these reports; gives what others request of them.

        Raises:
            StoreError: the leases were not renewed.
        """
        mine = (REPORTS.c.id.in_(ids), *self._unended)
        values = {"state": "running", "ended": None, "lease_until": self._now + self._lease_seconds}
        async with self._database.writing() as connection:
            await connection.execute(update(REPORTS).where(*mine).values(values))
            commanded = select(REPORTS.c.id, REPORTS.c.command).where(*mine, REPORTS.c.command != "")
            return {row.id: row.command for row in await connection.execute(commanded)}

    async def command(self, id: str, command: RunCommand) -> None:
        """Leave a command for the process that writes a report. A cancel is not taken back.

        Raises:
            StoreError: it could not be written.
        """
        there = update(REPORTS).where(REPORTS.c.id == id, REPORTS.c.state == "running", REPORTS.c.command != "cancel")
        async with self._database.writing() as connection:
            await connection.execute(there.values(command=command))

    async def get(self, id: str, *, key_id: str | None) -> ReportRow | None:
        """One report; with a key, only where it was requested with it.

        Raises:
            StoreError: it could not be read.
        """
        query = select(*_LISTED).where(REPORTS.c.id == id)
        if key_id is not None:
            query = query.where(REPORTS.c.key_id == key_id)
        await self._interrupt()
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).first()
        return self._row(found) if found else None

    async def report(self, id: str) -> str:
        """The report as JSON; empty where there is none.

        Raises:
            StoreError: it could not be read.
        """
        async with self._database.reading() as connection:
            found = (await connection.execute(select(REPORTS.c.report).where(REPORTS.c.id == id))).scalar_one_or_none()
        return read_text(found or "")

    async def list(self, *, key_id: str | None, before: tuple[float, str] | None, limit: int) -> list[ReportRow]:
        """Reports, the latest first.

        Raises:
            StoreError: they could not be read.
        """
        query = select(*_LISTED).order_by(REPORTS.c.created.desc(), REPORTS.c.id.desc()).limit(limit)
        if key_id is not None:
            query = query.where(REPORTS.c.key_id == key_id)
        if before is not None:
            created, id = before
            earlier = or_(REPORTS.c.created < created, (REPORTS.c.created == created) & (REPORTS.c.id < id))
            query = query.where(earlier)
        await self._interrupt()
        async with self._database.reading() as connection:
            return [self._row(found) for found in await connection.execute(query)]

    async def delete(self, id: str) -> bool:
        """Remove a report that has ended; false where there is none.

        Raises:
            StoreError: it was not removed.
        """
        async with self._database.writing() as connection:
            gone = await connection.execute(delete(REPORTS).where(REPORTS.c.id == id, REPORTS.c.state != "running"))
            return cast(CursorResult[Any], gone).rowcount > 0

    async def prune(self, *, days: float | None, reports: int | None) -> None:
        """Remove ended reports that are older than `days`, and the oldest ones beyond `reports`.

        Raises:
            StoreError: they were not removed.
        """
        ended = REPORTS.c.state != "running"
        async with self._database.writing() as connection:
            if days is not None:
                await connection.execute(delete(REPORTS).where(ended, REPORTS.c.created < self._now - days * 86_400))
            if reports is not None:
                await self._keep(connection, reports)

    async def _keep(self, connection: AsyncConnection, reports: int) -> None:
        """Keep the latest of those that have ended."""
        order = select(REPORTS.c.id).where(REPORTS.c.state != "running").order_by(REPORTS.c.created.desc())
        old = list((await connection.execute(order.offset(reports).limit(_AT_ONCE))).scalars())
        if old:
            await connection.execute(delete(REPORTS).where(REPORTS.c.id.in_(old)))

    async def _interrupt(self) -> None:
        """End the reports of processes that were not heard of: they are interrupted, with all that was stored."""
        dead = (REPORTS.c.state == "running", REPORTS.c.lease_until < self._now)
        async with self._database.reading() as connection:
            if (await connection.execute(select(REPORTS.c.id).where(*dead).limit(1))).first() is None:
                return
        async with self._database.writing() as connection:
            values = {"state": "interrupted", "ended": self._now, "lease_until": 0, "command": ""}
            await connection.execute(update(REPORTS).where(*dead).values(values))

    @property
    def _unended(self) -> tuple[ColumnElement[bool], ...]:
        """What this process still writes; some may be called interrupted, where the store was away for a lease."""
        return REPORTS.c.owner == self._owner, REPORTS.c.state.in_(("running", "interrupted"))

    @property
    def _now(self) -> Any:
        return now(self._database.dialect)

    def _row(self, found: Row[Any]) -> ReportRow:
        """A row that can be listed, whatever an older or broken version wrote."""
        return ReportRow(
            id=found.id,
            question=read_text(found.question),
            state=read_text(found.state),
            created=found.created if isinstance(found.created, int | float) else math.inf,
            ended=amount(found.ended, most=LAST_SECOND),
            figures=read_text(found.figures),
            mine=found.owner == self._owner,
        )


_LISTED = [
    column for column in REPORTS.c if column.name not in ("report", "libraries", "command", "lease_until", "key_id")
]
_AT_ONCE = 200
