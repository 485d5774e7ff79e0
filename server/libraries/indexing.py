"""Indexes libraries in the background, one after the other, in a process of its own; a kill loses one shard's work."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

from pydantic import ValidationError

from agent.parallel.processes import SAFE_PATH
from agent.sources.corpus.build import Stage
from agent.sources.corpus.finding import KINDS, SUFFIXES, saved_as
from agent.sources.extract.ending import end
from server.libraries.build import FileOutcome, FileToRead, Line, Shards, ShardToBuild
from server.libraries.folder import LibraryFolder
from server.store.errors import StoreError
from server.store.libraries import LibraryRows
from server.store.library_rows import Member

logger = logging.getLogger(__name__)

_PROGRAM: Final = "server.libraries.build"
_AGAIN_SECONDS: Final = (5.0, 300.0)
"""After a failure of the store, the disk or the process: the first time, and after doubling at most."""
_SETTLE_SECONDS: Final = 0.3
"""Files that come in a row are indexed together."""
_ENVIRONMENT: Final = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)} | SAFE_PATH
"""No key of the server's is in it."""
_LINE_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class IndexProgress:
    """How far the indexing of a library is."""

    shard: int
    """From 1."""
    shards: int
    stage: Stage
    done: int
    total: int


class Indexer:
    """Brings the indices of libraries up to date with their files."""

    def __init__(self, rows: LibraryRows, folder: LibraryFolder, *, settled: Callable[[str], None]) -> None:
        """Start nothing yet.

        Args:
            rows: says which files are to be indexed.
            folder: where they and the indices are.
            settled: called with the id of a library when one of its shards was built.
        """
        self._rows, self._folder, self._settled = rows, folder, settled
        self._waiting: dict[str, None] = {}
        self._came = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._progress: dict[str, IndexProgress] = {}
        self._deleted: set[str] = set()
        self._troubles: dict[str, tuple[str, float]] = {}
        """Why a library cannot be indexed now, and after how many seconds it is tried again."""

    def progress(self, library: str) -> IndexProgress | None:
        """How far it is with a library that it works on now."""
        return self._progress.get(library)

    def trouble(self, library: str) -> str:
        """Why a library cannot be indexed now; empty where it can."""
        return self._troubles.get(library, ("", 0.0))[0]

    async def open(self) -> None:
        """Begin with what another process, or this one before, left unfinished.

        Raises:
            StoreError: it could not be read.
        """
        for library in await self._rows.unfinished():
            self.add(library)
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    def add(self, library: str) -> None:
        """Have a library brought up to date soon; of one that just failed, when it is tried again."""
        if library not in self._troubles:
            self._waiting[library] = None
            self._came.set()

    def forget(self, library: str) -> None:
        """A library was deleted: whatever is being built of it goes."""
        self._deleted.add(library)
        self._waiting.pop(library, None)
        self._troubles.pop(library, None)

    async def aclose(self) -> None:
        """End the work; what was not done is done after the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                self._came.clear()
                await self._came.wait()
            await asyncio.sleep(_SETTLE_SECONDS)
            library = next(iter(self._waiting), None)
            if library is None:
                continue
            del self._waiting[library]
            try:
                await self._bring_up(library)
                if self._troubles.pop(library, None):
                    self.add(library)  # what came while it was tried again
            except Exception as error:  # noqa: BLE001 - the boundary: one that fails must not end the work for the others
                self._failed(library, error)
            finally:
                self._progress.pop(library, None)
                if library in self._deleted:
                    self._folder.remove_index(library)

    def _failed(self, library: str, error: Exception) -> None:
        """Note why a library cannot be indexed, and try again later; what is added meanwhile waits for that."""
        known = isinstance(error, StoreError | OSError)
        logger.warning("library %s cannot be indexed: %s", library, error, exc_info=None if known else error)
        first, most = _AGAIN_SECONDS
        seconds = min(most, 2 * self._troubles.get(library, ("", first / 2))[1])
        self._troubles[library] = str(error) if known else "the server's log has the details", seconds
        asyncio.get_running_loop().call_later(seconds, self._again, library)

    def _again(self, library: str) -> None:
        if library in self._troubles:
            self._waiting[library] = None
            self._came.set()

    async def _bring_up(self, library: str) -> None:
        """Build every shard that is not up to date.

        Raises:
            StoreError: the store failed. OSError: the process could not be started.
        """
        todo = await self._rows.to_build(library)
        wanted: list[ShardToBuild] = []
        for number, members in todo.items():
            readable = [member for member in members if _is_there(member) and _suffix(member.name) in SUFFIXES]
            if readable:
                files = [self._to_read(member) for member in readable]
                wanted.append(ShardToBuild(number=number, folder=self._folder.shard(library, number), files=files))
            else:
                self._folder.remove_shard(library, number)
                await self._settle(library, number, members, {})
        if wanted:
            await self._build(library, wanted, todo)

    def _to_read(self, member: Member) -> FileToRead:
        file = self._folder.source_file(member.file, member.name, member.url)
        return FileToRead(name=file.name, path=file.path, title=file.title, url=file.url)

    async def _build(self, library: str, wanted: Sequence[ShardToBuild], todo: Mapping[int, Sequence[Member]]) -> None:
        self._folder.shards(library).mkdir(mode=0o700, parents=True, exist_ok=True)
        order = {shard.number: place for place, shard in enumerate(wanted, start=1)}
        left = set(order)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", _PROGRAM),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=_ENVIRONMENT,
            limit=_LINE_BYTES,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(Shards(shards=list(wanted)).model_dump_json().encode() + b"\n")
            await process.stdin.drain()
            while len(left) and (raw := await process.stdout.readline()) and library not in self._deleted:
                line = Line.model_validate_json(raw)
                if line.kind == "progress":
                    self._progress[library] = IndexProgress(
                        order[line.shard], len(order), line.stage, line.done, line.total
                    )
                    continue
                left.discard(line.shard)
                await self._ended(library, line, todo[line.shard])
        except (ValidationError, ConnectionError) as error:
            raise OSError(f"the process that indexes said what cannot be read: {error}") from error
        finally:
            await end(process)
        if left and library not in self._deleted:
            raise OSError(f"the process that indexes ended with {process.returncode}")

    async def _ended(self, library: str, line: Line, members: Sequence[Member]) -> None:
        if line.kind == "failed":
            raise OSError(line.why)
        outcomes = {outcome.name: outcome for outcome in line.files}
        if not any(outcome.passages for outcome in outcomes.values()):
            self._folder.remove_shard(library, line.shard)  # it may hold what was deleted
        await self._settle(library, line.shard, members, outcomes)

    async def _settle(
        self, library: str, shard: int, members: Sequence[Member], outcomes: Mapping[str, FileOutcome]
    ) -> None:
        """Write down how the files of a shard came out; one that another server built meanwhile is built again."""
        there = [_with_outcome(member, outcomes) for member in members if _is_there(member)]
        gone = [member for member in members if member.state == "removed"]
        built = await self._rows.built(library, shard, there, gone=gone)
        if built == "of what is gone":
            self._folder.remove_shard(library, shard)
        if built != "as it is to be":
            self.add(library)
        self._settled(library)


def _is_there(member: Member) -> bool:
    return member.state not in ("removed", "cancelled")


def _with_outcome(member: Member, outcomes: Mapping[str, FileOutcome]) -> Member:
    outcome = outcomes.get(member.file)
    if outcome is None:
        why = saved_as(_suffix(member.name)) or f"files of this kind are not read; give {KINDS}"
        return replace(member, state="failed", passages=0, why=why)
    state = "indexed" if outcome.passages else "failed"
    return replace(member, state=state, passages=outcome.passages, why=outcome.why)


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower()  # as where its bytes are kept (`LibraryFolder.path_of`)
