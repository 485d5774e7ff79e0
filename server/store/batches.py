"""Batches: files that were put into a library together, and how far these are."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import insert, select, update

from server.store.database import Database
from server.store.libraries import counts_of
from server.store.library_rows import Counts
from server.store.tables import BATCH_FILES, BATCHES, MEMBERS, now

_AT_ONCE: Final = 500


@dataclass(frozen=True)
class BatchRow:
    """One batch."""

    id: str
    library: str
    cancelled: bool
    created: float


class FileBatches:
    """Reads and writes them. Each call is one transaction, and raises `StoreError` where the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._now = now(database.dialect)

    async def add(self, id: str, library: str, files: Collection[str]) -> None:
        """Write down a batch of files, each of which is in the library."""
        rows = [{"batch": id, "file": file} for file in dict.fromkeys(files)]
        async with self._database.writing() as connection:
            await connection.execute(insert(BATCHES).values(id=id, library=library, created=self._now))
            for start in range(0, len(rows), _AT_ONCE):
                await connection.execute(insert(BATCH_FILES), rows[start : start + _AT_ONCE])

    async def get(self, id: str, *, library: str) -> BatchRow | None:
        """One batch of a library."""
        query = select(BATCHES).where(BATCHES.c.id == id, BATCHES.c.library == library)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).first()
        return BatchRow(row.id, row.library, bool(row.cancelled), row.created) if row else None

    async def counts(self, batch: BatchRow) -> Counts:
        """How many of its files are in which state; those that were removed from the library do not count."""
        async with self._database.reading() as connection:
            return (await counts_of(connection, *_of(batch))).get(batch.library, Counts())

    async def cancel(self, batch: BatchRow) -> None:
        """Have its files that wait not be indexed; one that is being indexed now may still come out."""
        async with self._database.writing() as connection:
            await connection.execute(update(BATCHES).where(BATCHES.c.id == batch.id).values(cancelled=1))
            waiting = update(MEMBERS).where(*_of(batch), MEMBERS.c.state == "waiting")
            await connection.execute(waiting.values(state="cancelled"))


def _of(batch: BatchRow) -> tuple[Any, ...]:
    files = select(BATCH_FILES.c.file).where(BATCH_FILES.c.batch == batch.id)
    return MEMBERS.c.library == batch.library, MEMBERS.c.file.in_(files)
