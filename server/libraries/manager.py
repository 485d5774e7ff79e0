"""The libraries of a server: files come in, are indexed, searched and removed. It knows no request."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final, Protocol

from agent.sources.base import LibrarySource
from agent.sources.bm25 import Rows
from agent.sources.corpus.documents import StoredPassage
from agent.sources.corpus.shards import IndexShard, ShardedSource
from agent.sources.pages.fetch import Fetcher
from server.auth.keys import caller
from server.http.errors import ApiError, bad_request
from server.libraries.folder import LibraryFolder, Upload, new_id
from server.libraries.indexing import Indexer, IndexProgress
from server.libraries.shards import CurrentSource, OpenShards
from server.store import RunStore, StoreError
from server.store.libraries import LibraryRows
from server.store.library_rows import Attributes, Counts, DeletedFileError, FileRow, LibraryRow, Page

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 5.0
ALL: Final = "all"
_MOST: Final = 100
"""Libraries that are searched together."""


class AttributeFilter(Protocol):
    """Says by its attributes whether a file is searched."""

    def fits(self, attributes: Attributes) -> bool: ...


AttributeFilters = Mapping[str, AttributeFilter]
"""By the id of a library."""
_NO_FILTERS: Final[AttributeFilters] = {}


@dataclass(frozen=True)
class Quota:
    """What the files of one key may take."""

    file_bytes: int = 512 << 20
    bytes: int = 10 << 30
    files: int = 20_000


class LibraryManager:
    """Everything that is done with files and libraries. A `key_id` of None may see every key's."""

    def __init__(
        self, store: RunStore, folder: LibraryFolder, *, quota: Quota | None = None, fetcher: Fetcher | None = None
    ) -> None:
        """Open nothing yet.

        Args:
            store: keeps what is known of files and libraries.
            folder: keeps their bytes.
            quota: of each key.
            fetcher: of links; closed with this.
        """
        self.fetcher = fetcher or Fetcher()
        self.rows: LibraryRows = store.libraries
        self.batches = store.batches
        self.quota = quota or Quota()
        self._store, self._folder = store, folder
        self._shards = OpenShards(folder)
        self._indexer = Indexer(self.rows, folder, settled=self._shards.forget)
        self._opening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Make the folder and go on with what is not indexed yet. A store that is away is tried again.

        Raises:
            SetupError: others may write into the folder. OSError: it cannot be made.
        """
        self._folder.open()
        if self._opening is None:
            self._opening = asyncio.create_task(self._begin())

    async def aclose(self) -> None:
        """End the indexing; it goes on at the next start."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self._indexer.aclose()
        await self.fetcher.aclose()
        self._folder.close()

    async def _begin(self) -> None:
        while True:
            try:
                await self._indexer.open()
                await self._remove_strays()
                return
            except (StoreError, OSError) as error:
                logger.warning("libraries wait for the store: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _remove_strays(self) -> None:
        if not self._folder.belongs_to(self._store.database):
            logger.warning(
                "%s belongs to another store; what this one does not know there is left", self._folder.folder
            )
            return
        strays = list(self._folder.strays())
        files = await self.rows.known_files([id for id, path in strays if path.is_file()])
        for id, path in strays:
            if path.is_dir() and await self.rows.library(id, key_id=None):
                files.add(id)
        self._folder.remove_strays(files.__contains__, strays)

    async def allowed(self, ids: Sequence[str], *, key_id: str | None) -> list[LibraryRow]:
        """The libraries of these ids, if the key may see them.

        Raises:
            ApiError: one of them is not there.
        """
        found: list[LibraryRow] = []
        for id in ids:
            row = await self.rows.library(id, key_id=key_id)
            if row is None:
                message = f"There is no library {id!r}."
                raise ApiError(HTTPStatus.NOT_FOUND, message, param="libraries", code="library_not_found")
            found.append(row)
        return found

    def path_of(self, file: FileRow) -> Path:
        """Where its bytes are."""
        return self._folder.path_of(file.id, file.name)

    def upload(self) -> Upload:
        """Begin to write a file.

        Raises:
            OSError: there is no room.
        """
        return self._folder.upload()

    async def check_quota(self, key_id: str) -> None:
        """Refuse a file before it is sent, where its key has no room for more.

        Raises:
            ApiError: with what is full.
        """
        if not (self.quota.files and self.quota.bytes):
            raise _over_quota("This server takes no files; its operator can allow them (library_bytes, library_files).")
        files, size = await self.rows.used(key_id=key_id)
        if files >= self.quota.files or size >= self.quota.bytes:
            raise _over_quota(
                f"Your {files:,} files of {size:,} bytes fill your share ({self.quota.files:,} files, "
                f"{self.quota.bytes:,} bytes); delete some first."
            )

    async def keep(self, upload: Upload, name: str, *, key_id: str, purpose: str = "", url: str = "") -> FileRow:
        """An uploaded file is whole: keep it.

        Raises:
            ApiError: its key has no room for it. StoreError, OSError: it cannot be kept.
        """
        file = FileRow(new_id("file-"), name, upload.bytes, key_id=key_id, purpose=purpose, url=url)
        self._folder.take(upload, file.id, name)
        try:
            if kept := await self.rows.add_file(file, most_files=self.quota.files, most_bytes=self.quota.bytes):
                return kept
            files, size = await self.rows.used(key_id=key_id)
            raise _over_quota(
                f"The file has {upload.bytes:,} bytes, and of your share {max(0, self.quota.bytes - size):,} bytes and "
                f"{max(0, self.quota.files - files):,} files are left; delete other files first."
            )
        except BaseException:
            self._folder.remove_file(file.id, name)
            raise

    async def delete_file(self, file: FileRow) -> None:
        """Remove a file: no search finds it from now on, its bytes are gone, and its indices are built again.

        Raises:
            StoreError: it was not removed.
        """
        await self._delete_files([file])
        await self._store.database.shrink(log=True)

    async def _delete_files(self, files: Sequence[FileRow]) -> None:
        for library in await self.rows.delete_files([file.id for file in files]):
            self._indexer.add(library)
        for file in files:
            await asyncio.to_thread(self._folder.remove_file, file.id, file.name)

    async def add_library(self, name: str, metadata: Mapping[str, str], *, key_id: str) -> LibraryRow:
        return await self.rows.add_library(LibraryRow(new_id("vs_"), name, key_id=key_id, metadata=metadata))

    async def delete_library(self, library: LibraryRow, *, files: bool = False, runs: bool = False) -> None:
        """Remove a library and its index.

        Args:
            library: it.
            files: its files, too, also from other libraries.
            runs: the runs and reports that searched it, too: they quote it.

        Raises:
            StoreError: it was not removed.
        """
        # The library itself goes last: where the store fails on the way, the client can try all of it again.
        if files:
            await self._delete_files(await self.rows.own_files(library))
        await self.rows.delete_library(library.id, runs=runs)
        self._indexer.forget(library.id)
        self._folder.remove_index(library.id)
        self._shards.forget(library.id)
        await self._store.database.shrink(log=True)

    async def add(self, library: str, file: FileRow, attributes: Attributes | None = None) -> None:
        """Put a file into a library; it is indexed soon. Of one that is there, change the attributes that are given.

        Raises:
            ApiError: the library or the file is there no more. StoreError: it could not be written down.
        """
        try:
            await self._add(library, file, attributes)
        except DeletedFileError as error:
            raise no_file(file.id, param="file_id") from error

    async def _add(self, library: str, file: FileRow, attributes: Attributes | None) -> None:
        async with self._while_there(library):
            added = await self.rows.add_member(library, file, attributes)
        if added:
            self._indexer.add(library)

    async def add_batch(self, library: str, files: Sequence[tuple[FileRow, Attributes | None]]) -> str:
        """Put files with their attributes into a library together; gives the id of the batch.

        One that is deleted meanwhile is left out.

        Raises:
            ApiError: the library is there no more. StoreError: not all of it could be written down.
        """
        id = new_id("vsfb_")
        async with self._while_there(library):
            await self.batches.add(id, library, [file.id for file, _ in files])
        for file, attributes in files:
            with suppress(DeletedFileError):
                await self._add(library, file, attributes)
        return id

    @asynccontextmanager
    async def _while_there(self, library: str) -> AsyncGenerator[None]:
        """What the store refuses for a library that was deleted meanwhile is the client's error, and no bug."""
        try:
            yield
        except StoreError:
            await self.allowed([library], key_id=None)
            raise

    async def remove(self, library: str, file: str) -> bool:
        """Take a file out of a library, where it is in it; the file itself stays.

        Raises:
            StoreError: it was not taken out.
        """
        if removed := await self.rows.remove_member(library, file):
            self._indexer.add(library)
        return removed

    async def counts(self, libraries: Sequence[LibraryRow]) -> dict[str, Counts]:
        return await self.rows.counts([library.id for library in libraries])

    def progress(self, library: str) -> IndexProgress | None:
        """How far the indexing of a library is, where this server is at it."""
        return self._indexer.progress(library)

    def trouble(self, library: str) -> str:
        """Why a library cannot be indexed now; empty where it can. It is tried again."""
        return self._indexer.trouble(library)

    async def chosen(
        self, libraries: Sequence[str], files: Sequence[str], *, filters: AttributeFilters = _NO_FILTERS
    ) -> tuple[tuple[str, ...], LibrarySource]:
        """The libraries that a request of the caller's means, and what searches them.

        Args:
            libraries: their ids; `all`, or none: every one of the caller's.
            files: ids of files: only these are searched; none: all.
            filters: of the files of a library, by its id.

        Raises:
            ApiError: one of the libraries or files is not there, there are none, or a file is in none of the libraries.
            StoreError: they could not be looked for.
        """
        key = caller().key or None
        named = list(dict.fromkeys(libraries or (ALL,)))
        if ALL in named:
            rows = await self._every_library(key)
        else:
            rows = await self.allowed(named, key_id=key)
        if not rows:
            raise bad_request("You have no library yet; make one with POST /v1/vector_stores.", param="libraries")
        ids = tuple(row.id for row in rows)
        if files:
            await self._check_files(files, ids, key_id=key)
        return ids, await self.source(ids, files, filters=filters)

    async def _check_files(self, files: Sequence[str], libraries: Sequence[str], *, key_id: str | None) -> None:
        there = set(await self.rows.files_of(libraries, among=files))
        for id in files:
            if id in there:
                continue
            if await self.rows.file(id, key_id=key_id) is None:
                raise no_file(id, param="files")
            raise bad_request(f"The file {id!r} is in none of these libraries; put it into one first.", param="files")

    async def _every_library(self, key: str | None) -> list[LibraryRow]:
        rows: list[LibraryRow] = []
        while page := await self.rows.libraries(Page(after=rows[-1].id if rows else "", limit=_MOST), key_id=key):
            rows += page
        return rows

    async def source(
        self,
        libraries: Sequence[str],
        files: Sequence[str] = (),
        *,
        filters: AttributeFilters = _NO_FILTERS,
    ) -> LibrarySource:
        """Libraries as one source, or only these files of them, or those that fit a library's filter.

        Raises:
            StoreError: it cannot be seen which files they have.
        """
        named, wanted = frozenset(files) or None, dict[str, frozenset[str] | None]()
        for library in libraries:
            keep = filters.get(library, filters.get(ALL))
            if keep is None:
                wanted[library] = named
            else:
                fit = {id for id, said in (await self.rows.attributes(library)).items() if keep.fits(said)}
                wanted[library] = frozenset(fit if named is None else fit & named)
        opened = partial(self._opened, wanted)
        return CurrentSource(await opened(), opened)

    async def _opened(self, wanted: Mapping[str, frozenset[str] | None]) -> ShardedSource:
        """These files of each library, or all of them; what was deleted is left out."""
        removed = await self.rows.removed(wanted)  # before shards are opened, which may be built without it since
        shards: list[IndexShard] = []
        within: list[Rows | None] = []
        for library, hidden in removed.items():
            opened = await asyncio.to_thread(self._shards.of, library)
            shards += opened
            within += [shard.within(wanted[library], hidden) for shard in opened]
        return ShardedSource(shards, within=within)

    async def passages(self, file: str) -> list[StoredPassage]:
        """The passages of a file, as a search finds them, in their order; none where it is in no library's index.

        Raises:
            StoreError, CorpusError: they cannot be read.
        """
        for library in await self.rows.holding(file):
            for shard in await asyncio.to_thread(self._shards.of, library):
                if found := await asyncio.to_thread(_passages_of, shard, file):
                    return found
        return []


def no_file(id: str, *, param: str = "file") -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"There is no file {id!r}.", param=param, code="file_not_found")


def _over_quota(message: str) -> ApiError:
    return ApiError(HTTPStatus.FORBIDDEN, message, code="quota_exceeded")  # of a 5xx, clients send the file again


def _passages_of(shard: IndexShard, file: str) -> list[StoredPassage]:
    return list(shard.passages_of(file))
