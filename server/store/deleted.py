"""What is remembered of deleted files and libraries for some days: their places in lists, and whose runs went, too."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Select, delete, literal, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from server.store.database import Database
from server.store.tables import DELETED, LIBRARIES, now

_DAYS: Final = 7
"""Longer than any run lasts, and than a client takes to read a list."""


async def remember(connection: AsyncConnection, gone: Select[Any, Any], *, with_runs: bool = False) -> None:
    """Remember rows that are about to be deleted, given as (id, place in lists)."""
    dialect = connection.dialect.name
    into = (sqlite if dialect == "sqlite" else postgresql).insert(DELETED)
    rows = gone.add_columns(literal(int(with_runs)), now(dialect))
    into = into.from_select(["id", "place", "with_runs", "deleted"], rows)
    again = {name: into.excluded[name] for name in ("place", "deleted")}
    await connection.execute(into.on_conflict_do_update(index_elements=["id"], set_=again))


class UnknownPlaceError(LookupError):
    """A list can't go on behind a row: it was never there, or was deleted long ago."""


async def place_of(connection: AsyncConnection, id: str) -> float:
    """Where in its list a row was that was deleted.

    Raises:
        UnknownPlaceError: that is not known.
    """
    found = (await connection.execute(select(DELETED.c.place).where(DELETED.c.id == id))).scalar_one_or_none()
    if found is None:
        raise UnknownPlaceError(id)
    return found


async def erased(connection: AsyncConnection, libraries: Collection[str]) -> set[str]:
    """Which of these libraries were deleted together with the runs that searched them.

    A deletion that has not begun waits until this transaction has ended, and takes along what it stored.
    """
    if not libraries:
        return set()
    there = select(LIBRARIES.c.id).where(LIBRARIES.c.id.in_(libraries)).with_for_update(read=True, key_share=True)
    gone = set(libraries) - set((await connection.execute(there)).scalars())
    with_runs = select(DELETED.c.id).where(DELETED.c.id.in_(gone), DELETED.c.with_runs == 1)
    return set((await connection.execute(with_runs)).scalars()) if gone else gone


async def forget(database: Database) -> None:
    """Forget what was deleted long ago.

    Raises:
        StoreError: it was not.
    """
    old = now(database.dialect) - _DAYS * 86_400
    async with database.writing() as connection:
        await connection.execute(delete(DELETED).where(DELETED.c.deleted < old))


async def purge_words(connection: AsyncConnection) -> None:
    """Merge SQLite's index of words, which keeps those of deleted runs until then."""
    if connection.dialect.name == "sqlite":
        await connection.exec_driver_sql("INSERT INTO run_words(run_words) VALUES ('optimize')")
