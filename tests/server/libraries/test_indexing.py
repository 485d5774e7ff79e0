"""The process that indexes what was uploaded: what it gets, what it leaves out, and what happens when it fails."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from server.libraries.indexing import Indexer
from tests.server.libraries.made import FALLS, library_of, settled, use, with_libraries


def test_the_process_that_indexes_gets_no_key_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[bytes] = []
    monkeypatch.setenv("CAIRN_API_KEY", "sk-secret")

    async def work(client: AsyncOpenAI) -> None:
        uploaded = await client.files.create(file=("falls.md", FALLS * 2000), purpose="user_data")
        library = await client.vector_stores.create(file_ids=[uploaded.id])
        while (await client.vector_stores.retrieve(library.id)).status == "in_progress":
            seen.extend(environments())
            await asyncio.sleep(0.02)

    use(work, with_libraries(tmp_path))
    assert seen
    assert not any(b"sk-secret" in found for found in seen)


def environments() -> list[bytes]:
    """Of the processes that index."""
    found: list[bytes] = []
    for process in processes():
        with suppress(OSError):
            found.append(Path(f"/proc/{process}/environ").read_bytes())
    return found


def processes() -> list[int]:
    """Those that index on behalf of this one."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
            if int(parent) == os.getpid() and b"server.libraries.build" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def test_a_file_without_a_kind_fails_alone(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> dict[str, str]:
        library = await library_of(client, ("falls.md", FALLS), ("notes/.md", FALLS), ("x/..md", FALLS + b" Again."))
        listed = (await client.vector_stores.files.list(library.id)).data
        return {await name_of(client, file.id): file.status for file in listed}

    async def name_of(client: AsyncOpenAI, file: str) -> str:
        return (await client.files.retrieve(file)).filename

    assert use(work, with_libraries(tmp_path)) == {
        "falls.md": "completed",
        "notes/.md": "failed",
        "x/..md": "completed",
    }


def test_a_file_that_comes_while_a_failed_indexing_is_tried_again_is_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("server.libraries.indexing._AGAIN_SECONDS", (0.1, 1.0))
    build, tries, added = Indexer._build, [asyncio.Event(), asyncio.Event()], asyncio.Event()  # pyright: ignore[reportPrivateUsage]

    async def fails_once(self: Indexer, *wanted: Any) -> None:
        new = next((one for one in tries if not one.is_set()), None)
        if new:
            new.set()
        if new is tries[0]:
            raise OSError("no room")
        await added.wait()
        await build(self, *wanted)

    monkeypatch.setattr(Indexer, "_build", fails_once)

    async def work(client: AsyncOpenAI) -> int:
        first, second = [
            (await client.files.create(file=(f"{n}.md", FALLS + n.encode()), purpose="user_data")).id for n in "ab"
        ]
        library = (await client.vector_stores.create(file_ids=[first])).id
        await tries[1].wait()
        await client.vector_stores.files.create(library, file_id=second)
        added.set()
        return (await settled(client, library)).file_counts.completed

    assert use(work, with_libraries(tmp_path)) == 2


def test_when_the_process_that_indexes_is_killed_another_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("server.libraries.indexing._AGAIN_SECONDS", (0.1, 1.0))
    killed: list[int] = []

    async def work(client: AsyncOpenAI) -> int:
        uploaded = await client.files.create(file=("falls.md", FALLS * 3000), purpose="user_data")
        library = await client.vector_stores.create(file_ids=[uploaded.id])
        while (found := await client.vector_stores.retrieve(library.id)).status == "in_progress":
            if not killed and (building := processes()):
                killed.append(building[0])
                os.kill(building[0], signal.SIGKILL)
            await asyncio.sleep(0.02)
        return found.file_counts.completed

    assert use(work, with_libraries(tmp_path)) == 1
    assert killed
