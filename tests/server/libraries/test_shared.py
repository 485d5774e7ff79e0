"""Libraries beside each other: several stores, servers, uploads and failures on one folder."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import APIStatusError, AsyncOpenAI

from agent.sources.base import SearchRequest
from server.http.errors import ApiError
from server.libraries.build import ShardToBuild
from server.libraries.folder import LibraryFolder, folder_of
from server.libraries.manager import LibraryManager, Quota
from server.store import RunStore
from server.store.database import Database, default_path
from server.store.errors import StoreError
from server.store.library_rows import FileRow, Member
from tests.server.libraries.made import FALLS, ORR, client_of, settled, use, with_libraries


@asynccontextmanager
async def managing(folder: Path, store: str = "runs.sqlite") -> AsyncGenerator[LibraryManager]:
    """A manager of the folder's libraries, as a server with this store has it."""
    kept = RunStore(Database(str(folder / store)))
    manager = LibraryManager(kept, LibraryFolder(folder / "libraries"))
    await manager.open()
    try:
        yield manager
    finally:
        await manager.aclose()
        await kept.aclose()


async def kept(manager: LibraryManager, name: str, text: bytes) -> FileRow:
    upload = manager.upload()
    await upload.write(text)
    await upload.finish()
    return await manager.keep(upload, name, key_id="")


async def until_settled(manager: LibraryManager, library: str, files: int) -> None:
    """Wait until that many files of a library can be found."""
    while True:
        if (await manager.rows.counts([library]))[library].indexed == files:
            return
        await asyncio.sleep(0.05)


async def titles(manager: LibraryManager, library: str, query: str) -> set[str]:
    found = await (await manager.source([library])).search(SearchRequest(query, 5))
    return {passage.title.partition(" ›")[0] for passage in found.passages}


def test_every_store_has_a_folder_of_its_own(tmp_path: Path):
    databases = [
        Database(""),
        Database(str(tmp_path / "try.sqlite")),
        Database("postgresql://one/cairn"),
        Database("postgresql://other/cairn"),
    ]
    folders = [folder_of(database) for database in databases]
    assert len(set(folders)) == len(folders)
    assert folders[:2] == [default_path().with_name("libraries"), tmp_path / "try.sqlite.libraries"]
    assert folder_of(Database("memory")) is None


def test_only_the_store_that_a_folder_belongs_to_removes_what_it_does_not_know(tmp_path: Path):
    async def main() -> None:
        async with managing(tmp_path) as manager:
            path = manager.path_of(await kept(manager, "falls.md", FALLS))
        stray = path.with_name("file-" + "0" * 24 + ".md")
        stray.write_bytes(FALLS)
        hours_ago = time.time() - 7200
        for old in (path, stray):
            os.utime(old, (hours_ago, hours_ago))
        async with managing(tmp_path, "other.sqlite"):
            await asyncio.sleep(0.5)
        assert (path.exists(), stray.exists()) == (True, True)
        async with managing(tmp_path):
            await asyncio.sleep(0.5)
        assert (path.exists(), stray.exists()) == (True, False)
        (tmp_path / "runs.sqlite").unlink()  # as if the last row had gone, and the server died before its bytes did
        async with managing(tmp_path):
            await asyncio.sleep(0.5)
        assert not path.exists()

    asyncio.run(main())


@pytest.mark.parametrize("deleted", [False, True])
def test_a_server_that_builds_what_another_one_built_since_loses_no_file_and_brings_none_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deleted: bool
):
    async def main() -> None:
        async with managing(tmp_path) as slow:
            await beside(slow)

    async def beside(slow: LibraryManager) -> None:
        built, began = asyncio.Event(), asyncio.Event()
        indexer: Any = slow._indexer  # pyright: ignore[reportPrivateUsage]
        build = indexer._build

        async def late(library: str, wanted: Sequence[ShardToBuild], todo: Mapping[int, Sequence[Member]]) -> None:
            began.set()
            await built.wait()
            await build(library, wanted, todo)

        monkeypatch.setattr(indexer, "_build", late)
        library = (await slow.add_library("Films", {}, key_id="")).id
        first = await kept(slow, "falls.md", FALLS)
        await slow.add(library, first)
        await began.wait()
        async with managing(tmp_path) as fast:
            await fast.add(library, await kept(fast, "orr.html", ORR))
            await until_settled(fast, library, 2)
            if deleted:
                await fast.delete_file(first)
                await until_settled(fast, library, 1)
        built.set()
        await asyncio.sleep(1.5)
        await until_settled(slow, library, 1 if deleted else 2)
        there = {"Lina Orr"} if deleted else {"Lina Orr", "Aurora Falls"}
        assert await titles(slow, library, "Lina Orr Trieste film miller") == there

    asyncio.run(main())


def test_a_file_that_is_deleted_while_it_is_put_into_a_library_is_not_in_it(tmp_path: Path):
    async def main() -> None:
        async with managing(tmp_path) as manager:
            library = (await manager.add_library("Films", {}, key_id="")).id
            falls, orr = await kept(manager, "falls.md", FALLS), await kept(manager, "orr.html", ORR)
            await manager.delete_file(falls)
            await manager.add_batch(library, [(falls, None), (orr, None)])
            await until_settled(manager, library, 1)
            assert (await manager.rows.counts([library]))[library].total == 1
            with pytest.raises(ApiError, match="There is no file"):
                await manager.add(library, falls)

    asyncio.run(main())


def test_uploads_at_once_keep_within_the_share_of_their_key(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> list[Any]:
        files = [client.files.create(file=(f"{n}.txt", b"x" * 60), purpose="user_data") for n in range(6)]
        return await asyncio.gather(*files, return_exceptions=True)

    replies = use(work, with_libraries(tmp_path, quota=Quota(file_bytes=100, bytes=150)))
    refused = [reply for reply in replies if isinstance(reply, APIStatusError)]
    assert (len(replies) - len(refused), {error.status_code for error in refused}) == (2, {403})
    assert len(list((tmp_path / "libraries" / "files").iterdir())) == 2


def test_all_means_every_library_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("server.libraries.manager._MOST", 2)

    async def main() -> None:
        async with managing(tmp_path) as manager:
            made = [(await manager.add_library(f"{n}", {}, key_id="")).id for n in range(5)]
            chosen, _ = await manager.chosen(["all"], [])
            assert sorted(chosen) == sorted(made)

    asyncio.run(main())


def test_a_library_whose_deletion_failed_still_works_and_can_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    service = with_libraries(tmp_path)
    assert service.libraries
    rows = service.libraries.rows
    delete = rows.delete_library

    async def full(id: str, *, runs: bool = False) -> bool:
        monkeypatch.setattr(rows, "delete_library", delete)
        raise StoreError("full", "")

    async def run() -> None:
        async with client_of(service) as client:
            library = await client.vector_stores.create(name="Films")
            monkeypatch.setattr(rows, "delete_library", full)
            with pytest.raises(APIStatusError) as failed:
                await client.vector_stores.delete(library.id)
            assert failed.value.status_code == 503
            file = await client.files.create(file=("falls.md", FALLS), purpose="user_data")
            await client.vector_stores.files.create(library.id, file_id=file.id)
            assert (await settled(client, library.id)).file_counts.completed == 1
            assert (await client.vector_stores.search(library.id, query="film")).data
            await client.vector_stores.delete(library.id)
            assert (await client.vector_stores.list()).data == []

    asyncio.run(run())
