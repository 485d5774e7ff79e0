"""What is kept of libraries: uploaded files, libraries, and which file is in which. The bytes are in a folder."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    Row,
    Select,
    Table,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from server.store.database import Database
from server.store.deleted import place_of, purge_words, remember
from server.store.library_rows import (
    SHARD_BYTES,
    SHARD_FILES,
    Attributes,
    Built,
    Counts,
    DeletedFileError,
    FileRow,
    LibraryRow,
    Member,
    MemberState,
    Page,
    file_of,
    library_of,
    member_of,
    read_object,
)
from server.store.serial import storable
from server.store.tables import BATCH_FILES, BATCHES, FILES, LIBRARIES, MEMBERS, REPORTS, RUNS, now

_AT_ONCE: Final = 500


class LibraryRows:
    """Reads and writes them. Each call is one transaction, and raises `StoreError` where the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._now = now(database.dialect)

    async def add_file(self, file: FileRow, *, most_files: int, most_bytes: int) -> FileRow | None:
        """A file was uploaded; gives the row with its time. None: its key would have more than that, with this one."""
        row = {
            "id": file.id,
            "key_id": file.key_id,
            "name": storable(file.name),
            "purpose": storable(file.purpose),
            "url": storable(file.url),
            "bytes": file.bytes,
            "created": self._now,
        }
        async with self._database.writing() as connection:
            if self._database.dialect == "postgresql":  # SQLite has one writer; here, two uploads of a key take turns
                lock = "SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))"
                await connection.execute(text(lock), {"key": f"cairn files {file.key_id}"})
            count, size = (await connection.execute(_used(file.key_id))).one()
            if count + 1 > most_files or size + file.bytes > most_bytes:
                return None
            return file_of((await connection.execute(insert(FILES).values(row).returning(FILES))).one())

    async def file(self, id: str, *, key_id: str | None) -> FileRow | None:
        """One file, where it was uploaded with this key; None as the key: with any."""
        row = await self._one(_of_key(select(FILES).where(FILES.c.id == storable(id)), FILES, key_id))
        return file_of(row) if row else None

    async def files(self, page: Page, *, key_id: str | None, purpose: str = "") -> list[FileRow]:
        query = _of_key(select(FILES), FILES, key_id)
        if purpose:
            query = query.where(FILES.c.purpose == storable(purpose))
        return [file_of(row) for row in await self._page(query, FILES, page)]

    async def known_files(self, ids: Collection[str]) -> set[str]:
        """Which of these ids are files."""
        async with self._database.reading() as connection:
            return set((await connection.execute(select(FILES.c.id).where(FILES.c.id.in_(ids)))).scalars())

    async def used(self, *, key_id: str) -> tuple[int, int]:
        """How many files a key has, and their bytes."""
        async with self._database.reading() as connection:
            count, size = (await connection.execute(_used(key_id))).one()
        return int(count), int(size)

    async def delete_files(self, ids: Sequence[str]) -> set[str]:
        """Remove files, also from their libraries; gives those, whose shards are to be built again."""
        libraries: set[str] = set()
        async with self._database.writing() as connection:
            for start in range(0, len(ids), _AT_ONCE):
                some = ids[start : start + _AT_ONCE]
                mine, files = MEMBERS.c.file.in_(some), FILES.c.id.in_(some)
                await remember(connection, select(FILES.c.id, FILES.c.created).where(files))
                await connection.execute(delete(FILES).where(files))  # first: `add_member` waits for it
                libraries |= set((await connection.execute(select(MEMBERS.c.library).where(mine))).scalars())
                await connection.execute(update(MEMBERS).where(mine).values(state="removed", why="", passages=0))
        return libraries

    async def add_library(self, library: LibraryRow) -> LibraryRow:
        row = {
            "id": library.id,
            "key_id": library.key_id,
            "name": storable(library.name),
            "metadata": storable(json.dumps(dict(library.metadata))),
            "created": self._now,
        }
        async with self._database.writing() as connection:
            return library_of((await connection.execute(insert(LIBRARIES).values(row).returning(LIBRARIES))).one())

    async def library(self, id: str, *, key_id: str | None) -> LibraryRow | None:
        """One library, where it was made with this key; None as the key: with any."""
        row = await self._one(_of_key(select(LIBRARIES).where(LIBRARIES.c.id == id), LIBRARIES, key_id))
        return library_of(row) if row else None

    async def libraries(self, page: Page, *, key_id: str | None) -> list[LibraryRow]:
        rows = await self._page(_of_key(select(LIBRARIES), LIBRARIES, key_id), LIBRARIES, page)
        return [library_of(row) for row in rows]

    async def change_library(self, id: str, *, name: str | None, metadata: Mapping[str, str] | None) -> None:
        values: dict[str, Any] = {}
        if name is not None:
            values["name"] = storable(name)
        if metadata is not None:
            values["metadata"] = storable(json.dumps(dict(metadata)))
        if values:
            async with self._database.writing() as connection:
                await connection.execute(update(LIBRARIES).where(LIBRARIES.c.id == id).values(values))

    async def delete_library(self, id: str, *, runs: bool = False) -> bool:
        """Remove a library; its files stay. False where there is none.

        Args:
            id: of the library.
            runs: whether all that is stored of the runs and reports that searched it goes, too. What of them goes on
                is not kept when it ends.
        """
        mine = LIBRARIES.c.id == id
        async with self._database.writing() as connection:
            await connection.execute(select(LIBRARIES.c.id).where(mine).with_for_update())  # `erased` waits for it
            await remember(connection, select(LIBRARIES.c.id, LIBRARIES.c.created).where(mine), with_runs=runs)
            if runs:
                await self._delete_runs(connection, id)
            batches = select(BATCHES.c.id).where(BATCHES.c.library == id)
            await connection.execute(delete(BATCH_FILES).where(BATCH_FILES.c.batch.in_(batches)))
            await connection.execute(delete(BATCHES).where(BATCHES.c.library == id))
            await connection.execute(delete(MEMBERS).where(MEMBERS.c.library == id))
            gone = await connection.execute(delete(LIBRARIES).where(mine))
            return cast(CursorResult[Any], gone).rowcount > 0

    async def counts(self, ids: Collection[str]) -> dict[str, Counts]:
        """Of each library, how many of its files are in which state."""
        async with self._database.reading() as connection:
            found = await counts_of(connection, MEMBERS.c.library.in_(ids))
        return {id: found.get(id, Counts()) for id in ids}

    async def add_member(self, library: str, file: FileRow, attributes: Attributes | None = None) -> bool:
        """Put a file into a library, into its last shard or, where that is full, into a new one.

        `attributes` are those of the file there; None: none, or as they were. Gives whether it was not there before.

        Raises:
            DeletedFileError: the file was deleted.
        """
        of_library = MEMBERS.c.library == library
        sizes = select(MEMBERS.c.shard, func.count(), func.sum(MEMBERS.c.bytes)).where(of_library)
        last = sizes.group_by(MEMBERS.c.shard).order_by(MEMBERS.c.shard.desc()).limit(1)
        mine = and_(of_library, MEMBERS.c.file == file.id)
        said = {"attributes": storable(json.dumps(dict(attributes or {})))}
        there = select(FILES.c.id).where(FILES.c.id == file.id).with_for_update(read=True, key_share=True)
        async with self._database.writing() as connection:
            if (await connection.execute(there)).first() is None:
                raise DeletedFileError(file.id)
            state = (await connection.execute(select(MEMBERS.c.state).where(mine))).scalar_one_or_none()
            if state not in (None, "removed", "cancelled"):
                if attributes is not None:
                    await connection.execute(update(MEMBERS).where(mine).values(said))
                return False
            shard, count, size = (await connection.execute(last)).first() or (0, 0, 0)
            full = count and (count >= SHARD_FILES or size + file.bytes > SHARD_BYTES)
            row = {
                "library": library,
                "file": file.id,
                "shard": shard + 1 if full else shard,
                "state": "waiting",
                "bytes": file.bytes,
                "added": self._now,
                **said,
            }
            if state:  # one that was removed is in its shard until that is built again
                back = {"state": "waiting", "added": self._now, **said}
                await connection.execute(update(MEMBERS).where(mine).values(back))
            else:
                await connection.execute(insert(MEMBERS).values(row))
        return True

    async def remove_member(self, library: str, file: str) -> bool:
        """Take a file out of a library; false where it isn't there."""
        mine = and_(MEMBERS.c.library == library, MEMBERS.c.file == file, MEMBERS.c.state != "removed")
        async with self._database.writing() as connection:
            gone = await connection.execute(update(MEMBERS).where(mine).values(state="removed", why="", passages=0))
            return cast(CursorResult[Any], gone).rowcount > 0

    async def member(self, library: str, file: str) -> Member | None:
        query = _members().where(MEMBERS.c.library == library, MEMBERS.c.file == file, MEMBERS.c.state != "removed")
        row = await self._one(query)
        return member_of(row) if row else None

    async def members(
        self, library: str, page: Page, *, state: MemberState | None = None, batch: str = ""
    ) -> list[Member]:
        """Files of a library, or of one batch of them, the last added first."""
        query = _members().where(MEMBERS.c.library == library, MEMBERS.c.state != "removed")
        if batch:
            query = query.where(MEMBERS.c.file.in_(select(BATCH_FILES.c.file).where(BATCH_FILES.c.batch == batch)))
        if state:
            query = query.where(MEMBERS.c.state == state)
        rows = await self._page(query, MEMBERS, page, id="file", time="added", library=library)
        return [member_of(row) for row in rows]

    async def own_files(self, library: LibraryRow) -> list[FileRow]:
        """The files of a library that were uploaded with its key."""
        of_library = select(MEMBERS.c.file).where(MEMBERS.c.library == library.id, MEMBERS.c.state != "removed")
        query = select(FILES).where(FILES.c.id.in_(of_library), FILES.c.key_id == library.key_id)
        async with self._database.reading() as connection:
            return [file_of(row) for row in await connection.execute(query)]

    async def files_of(self, libraries: Collection[str], *, among: Collection[str] | None = None) -> list[str]:
        """The ids of all files of these libraries, or of those among these ids."""
        query = select(MEMBERS.c.file).where(MEMBERS.c.library.in_(libraries), MEMBERS.c.state != "removed")
        if among is not None:
            query = query.where(MEMBERS.c.file.in_([storable(id) for id in among]))
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def removed(self, ids: Collection[str]) -> dict[str, set[str]]:
        """The files of each library that is there which may be in its index still, and must not be found any more."""
        gone = and_(MEMBERS.c.library == LIBRARIES.c.id, MEMBERS.c.state.in_(("removed", "cancelled")))
        query = select(LIBRARIES.c.id, MEMBERS.c.file).outerjoin(MEMBERS, gone).where(LIBRARIES.c.id.in_(ids))
        found: dict[str, set[str]] = {}
        async with self._database.reading() as connection:
            for library, file in await connection.execute(query):
                found.setdefault(library, set()).update(() if file is None else (file,))
        return {id: found[id] for id in ids if id in found}

    async def attributes(self, library: str) -> dict[str, Attributes]:
        """Of each of its files that can be found."""
        there = MEMBERS.c.library == library, MEMBERS.c.state == "indexed"
        query = select(MEMBERS.c.file, MEMBERS.c.attributes).where(*there)
        async with self._database.reading() as connection:
            return {row.file: read_object(row.attributes) for row in await connection.execute(query)}

    async def holding(self, file: str) -> list[str]:
        """The libraries in which a file may be found."""
        query = select(MEMBERS.c.library).where(MEMBERS.c.file == file, MEMBERS.c.state == "indexed")
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def unfinished(self) -> list[str]:
        """The libraries that are to be indexed."""
        query = select(MEMBERS.c.library).where(MEMBERS.c.state.in_(("waiting", "removed"))).distinct()
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def to_build(self, library: str) -> dict[int, list[Member]]:
        """By shard that is to be built again: every file that was ever in it, also those that were removed."""
        unfinished = select(MEMBERS.c.shard).where(
            MEMBERS.c.library == library, MEMBERS.c.state.in_(("waiting", "removed"))
        )
        query = _members().where(MEMBERS.c.library == library, MEMBERS.c.shard.in_(unfinished))
        found: dict[int, list[Member]] = {}
        async with self._database.reading() as connection:
            for row in await connection.execute(query.order_by(MEMBERS.c.shard, MEMBERS.c.added, MEMBERS.c.file)):
                found.setdefault(row.shard, []).append(member_of(row))
        return found

    async def built(self, library: str, shard: int, members: Sequence[Member], *, gone: Sequence[Member]) -> Built:
        """A shard was built: how each of its files came out, and which are in it no more.

        What was removed or added again while it was built stays to be done.
        """
        of_shard = and_(MEMBERS.c.library == library, MEMBERS.c.shard == shard)
        async with self._database.writing() as connection:
            states = select(MEMBERS.c.file, MEMBERS.c.state).where(of_shard)
            now_there: dict[str, str] = {row.file: row.state for row in await connection.execute(states)}
            ours = {member.file for member in members}
            gone_since = ours - now_there.keys()
            if gone_since or {file for file, state in now_there.items() if state == "indexed"} - ours:
                again = update(MEMBERS).where(of_shard, MEMBERS.c.state.in_(("indexed", "failed")))
                await connection.execute(again.values(state="waiting"))
                return "of what is gone" if gone_since else "of too little"
            for member in members:
                mine = and_(MEMBERS.c.library == member.library, MEMBERS.c.file == member.file)
                values = {"state": member.state, "why": storable(member.why), "passages": member.passages}
                await connection.execute(update(MEMBERS).where(mine, MEMBERS.c.state != "removed").values(values))
            for member in gone:
                mine = and_(
                    MEMBERS.c.library == member.library, MEMBERS.c.file == member.file, MEMBERS.c.state == "removed"
                )
                id = MEMBERS.c.library.concat("/").concat(MEMBERS.c.file)
                await remember(connection, select(id, MEMBERS.c.added).where(mine))
                await connection.execute(delete(MEMBERS).where(mine))
        return "as it is to be"

    async def _delete_runs(self, connection: AsyncConnection, library: str) -> None:
        running = select(RUNS.c.number).where(_searched(RUNS, library), RUNS.c.state == "running")
        in_turn = running.order_by(RUNS.c.number).with_for_update()  # or two writers wait for each other
        await connection.execute(in_turn)
        for table in (RUNS, REPORTS):
            await connection.execute(delete(table).where(_searched(table, library)))
        await purge_words(connection)

    async def _one(self, query: Select[Any]) -> Row[Any] | None:
        async with self._database.reading() as connection:
            return (await connection.execute(query)).first()

    async def _page(
        self, query: Select[Any], table: Table, page: Page, *, id: str = "id", time: str = "created", library: str = ""
    ) -> Sequence[Row[Any]]:
        """The rows of a list behind those of the page before, also where its last row was deleted since.

        Raises:
            UnknownPlaceError: there is no such row, nor was there lately.
        """
        ids, times, after = table.c[id], table.c[time], storable(page.after)
        order = (times, ids) if page.oldest_first else (times.desc(), ids.desc())
        async with self._database.reading() as connection:
            if after:
                there = select(times).where(ids == after, *((table.c.library == library,) if library else ()))
                at = (await connection.execute(there)).scalar_one_or_none()
                if at is None:
                    at = await place_of(connection, f"{library}/{after}" if library else after)
                further = (times > at, ids > after) if page.oldest_first else (times < at, ids < after)
                query = query.where(or_(further[0], and_(times == at, further[1])))
            return (await connection.execute(query.order_by(*order).limit(page.limit))).all()


def _searched(table: Table, library: str) -> ColumnElement[bool]:
    return table.c.libraries.contains(library, autoescape=True)


def _used(key_id: str) -> Select[int, Any]:
    return select(func.count(), func.coalesce(func.sum(FILES.c.bytes), 0)).where(FILES.c.key_id == key_id)


async def counts_of(connection: AsyncConnection, *which: ColumnElement[bool]) -> dict[str, Counts]:
    """By library, how many of these files are in which state; those that were removed do not count."""
    by = MEMBERS.c.library, MEMBERS.c.state
    sizes = func.coalesce(func.sum(MEMBERS.c.bytes), 0)
    query = select(*by, func.count(), sizes).where(MEMBERS.c.state != "removed", *which).group_by(*by)
    found: dict[str, dict[str, int]] = {}
    for library, state, count, size in await connection.execute(query):
        states = found.setdefault(library, {"bytes": 0})
        states[state], states["bytes"] = count, states["bytes"] + int(size)
    return {library: Counts(**states) for library, states in found.items()}


def _of_key(query: Select[Any], table: Table, key_id: str | None) -> Select[Any]:
    return query if key_id is None else query.where(table.c.key_id == key_id)


def _members() -> Select[Any]:
    """Members with the names of their files; of one that was deleted, none is left."""
    return select(MEMBERS, FILES.c.name, FILES.c.url).outerjoin(FILES, FILES.c.id == MEMBERS.c.file)
