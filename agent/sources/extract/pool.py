"""The worker processes that extract text: started when needed, killed when a request takes too long, and replaced.

The loop only waits for pipes. Answers are JSON, never pickles: a parser that a page has taken over can say nothing
here but text.
"""

import asyncio
import json
import os
import sys
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from agent.cores import cores
from agent.sources.extract.ending import end
from agent.sources.extract.page import MAX_TEXT_CHARS
from agent.sources.extract.text import MAX_CHARS, Extracted, ExtractError, Kind, ReadingFailed
from agent.sources.extract.worker import LENGTH

SECONDS: Final = 60.0
"""A book of a thousand pages takes less."""
MEGABYTES: Final = 4096
"""Address space of a worker, where the system can limit it."""
MOST_WORKERS: Final = 8
"""Each one holds an extraction library in memory."""

_PROGRAM: Final = "agent.sources.extract.worker"
START_SECONDS: Final = 20.0
"""For a process to start and to load its libraries; a second on a slow machine."""
EXIT_SECONDS: Final = 1.0
"""For a process whose pipe has ended, to be gone."""
REQUESTS_PER_WORKER: Final = 500
"""Then it is replaced: parsers leak."""
BYTES_PER_CHAR: Final = 6
"""Of an answer, at most."""
ANSWER_BYTES: Final = 65_536
"""Of an answer beside its text; a document's also lists its pages."""


@dataclass(frozen=True)
class _Request:
    kind: str
    how: str
    """document; or of a page, whole or fast."""
    seconds: float
    charset: str = ""
    url: str = ""

    @property
    def most_bytes(self) -> int:
        chars = MAX_CHARS if self.how == "document" else MAX_TEXT_CHARS
        return BYTES_PER_CHAR * chars + ANSWER_BYTES


@dataclass(eq=False)
class _Worker:
    process: asyncio.subprocess.Process
    requests: int = 0
    loaded: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Kinds of request whose libraries are there."""

    async def extract(self, request: _Request, body: bytes) -> dict[str, Any]:
        """Have one page or document read.

        Raises:
            ExtractError: the process died, did not end in time, or gave no valid answer.
        """
        writer, reader = self.process.stdin, self.process.stdout
        assert writer is not None
        assert reader is not None
        self.requests += 1
        head = json.dumps(asdict(request)).encode()
        needs = request.kind, request.how
        seconds = request.seconds if needs in self.loaded else START_SECONDS
        try:
            async with asyncio.timeout(seconds):
                writer.write(LENGTH.pack(len(head)) + head + LENGTH.pack(len(body)) + body)
                await writer.drain()
                await _read(reader, ANSWER_BYTES)
            self.loaded.add(needs)
            seconds = request.seconds
            async with asyncio.timeout(seconds):
                return await _read(reader, request.most_bytes)
        except TimeoutError as error:
            raise ReadingFailed(f"reading it took more than {seconds:g} s: save it in smaller parts") from error
        except (OSError, EOFError) as error:
            died = f"its reader died (status {await self._status()})"
            raise ReadingFailed(f"{died}: the file is damaged or too large; save it again, in smaller parts") from error
        except (ValueError, RecursionError) as error:
            raise ExtractError("its reader gave no valid answer") from error

    async def _status(self) -> int | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS):
                await self.process.wait()
        return self.process.returncode


class ExtractPool:
    """A few processes, used in turn."""

    def __init__(
        self, *, count: int = 2, seconds: float = 3.0, megabytes: int = 1024, command: Sequence[str] = ()
    ) -> None:
        """Start nothing yet.

        Args:
            count: processes at the same time.
            seconds: for one request; the fast extractor of pages then gets half of it once more, in a new process.
            megabytes: of address space for one process.
            command: another program that speaks the same protocol, for tests.
        """
        self._seconds = seconds
        self._command = tuple(command) or (sys.executable, "-P", "-m", _PROGRAM, str(megabytes))
        self._free = asyncio.Semaphore(count)
        self._idle: list[_Worker] = []
        self._all: list[_Worker] = []
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """Of the processes that live now."""
        return [worker.process.pid for worker in self._all]

    async def document(self, path: Path, kind: str) -> Extracted:
        """Read one file as a whole (`agent.sources.extract.document`).

        Raises:
            ExtractError: it has no text that can be read, or reading it took too long.
        """
        return await self._extract(_Request(kind, "document", self._seconds), os.fsencode(path))

    async def page(self, body: bytes, *, kind: Kind, charset: str = "", url: str = "") -> Extracted:
        """Find the text of a page (`agent.sources.extract.page`); where that fails on HTML, the fast one gets a try.

        Raises:
            ExtractError: no text was found.
        """
        try:
            found = await self._extract(_Request(kind, "whole", self._seconds, charset, url), body)
        except ExtractError:
            if kind != "html" or self._closed:
                raise
            found = await self._extract(_Request(kind, "fast", self._seconds / 2, charset, url), body)
        if not found.text:
            raise ExtractError("it holds no readable text")
        return found

    async def _extract(self, request: _Request, body: bytes) -> Extracted:
        async with self._free:
            worker = await self._take()
            fit = False
            try:
                answer = await worker.extract(request, body)
                fit = "broken" not in answer and worker.requests < REQUESTS_PER_WORKER
            finally:
                await self._give(worker, fit=fit)
        if "why" in answer:
            raise ExtractError(str(answer["why"]))
        return _extracted(answer)

    async def _take(self) -> _Worker:
        if self._closed:
            raise ExtractError("the extraction is closed")
        self._all = [worker for worker in self._all if worker.process.returncode is None]
        while self._idle:
            worker = self._idle.pop()
            if worker in self._all:
                return worker
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={"PYTHONPATH": os.pathsep.join(sys.path)} if sys.platform != "win32" else None,
                limit=1 << 20,
            )
        except OSError as error:
            raise ReadingFailed("no process can be started to find its text") from error
        worker = _Worker(process)
        self._all.append(worker)
        return worker

    async def _give(self, worker: _Worker, *, fit: bool) -> None:
        """Keep a worker for the next request, or end it: also when its caller gave up in the middle."""
        if fit and not self._closed:
            self._idle.append(worker)
            return
        await end(worker.process)
        if worker in self._all:  # else everything was closed meanwhile
            self._all.remove(worker)

    async def aclose(self) -> None:
        """End every process."""
        self._closed = True
        self._idle.clear()
        workers, self._all = self._all, []
        for worker in workers:
            await end(worker.process)


def _extracted(answer: dict[str, Any]) -> Extracted:
    """An answer as far as it goes: fields of other types become text."""
    fields = {name: str(answer.get(name, "")) for name in ("text", "title", "date", "url", "language", "how")}
    pages = answer.get("pages")
    starts = cast(list[Any], pages) if isinstance(pages, list) else []
    return Extracted(**fields, pages=tuple(start for start in starts if isinstance(start, int)))


async def _read(reader: asyncio.StreamReader, most_bytes: int) -> dict[str, Any]:
    size = LENGTH.unpack(await reader.readexactly(LENGTH.size))[0]
    if size > most_bytes:
        raise ValueError("the answer is too long")
    answer = json.loads(await reader.readexactly(size))
    if not isinstance(answer, dict):
        raise ValueError("the answer is not an object")
    return answer  # pyright: ignore[reportUnknownVariableType]


@dataclass(frozen=True)
class _Ahead:
    """A file that is read before its turn."""

    path: Path
    state: tuple[int, int]
    """Before it was read: it may change until its turn comes, and then this is not its text."""
    text: Future[Extracted]


def _state_of(path: Path) -> tuple[int, int]:
    """Size and time of the last change; of what is not there, none."""
    try:
        found = path.stat()
    except OSError:
        return (-1, -1)
    return found.st_size, found.st_mtime_ns


class FileReader:
    """Owns worker processes and the event loop that waits for them, in a thread.

    It reads ahead of the caller where it knows which files come. A parser that hangs, crashes or eats memory costs one
    file only.
    """

    def __init__(
        self,
        planned: Iterable[tuple[Path, str]] = (),
        *,
        workers: int | None = None,
        seconds: float = SECONDS,
        megabytes: int = MEGABYTES,
    ) -> None:
        """Start nothing before the first file is read.

        Args:
            planned: path and kind of each file, in the order in which they will be read.
            workers: processes; None: one for each processor.
            seconds: for one file.
            megabytes: of address space for one worker.
        """
        count = workers or min(cores(), MOST_WORKERS)
        self._planned = iter(planned)
        self._most_ahead = 2 * count
        self._ahead: deque[_Ahead] = deque()
        self._pool = ExtractPool(count=count, seconds=seconds, megabytes=megabytes)
        self._thread: threading.Thread | None = None
        self._loop: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    def read(self, path: Path, kind: str) -> Extracted:
        """Read one file.

        Args:
            path: the file.
            kind: as `agent.sources.extract.document` knows it.

        Raises:
            ExtractError: it has no text that can be read, or reading it took too long.
        """
        self._read_ahead()
        found = self._taken(path)
        text = found.text if found and found.state == _state_of(path) else self._start(path, kind)
        self._read_ahead()
        return text.result()

    def _taken(self, path: Path) -> "_Ahead | None":
        """What was read ahead of a file; files before it that were not wanted go."""
        while any(one.path == path for one in self._ahead):
            if (first := self._ahead.popleft()).path == path:
                return first
        return None

    def _read_ahead(self) -> None:
        """Keep every worker busy, and as many files again in memory, no more."""
        while len(self._ahead) < self._most_ahead and (following := next(self._planned, None)):
            path, kind = following
            self._ahead.append(_Ahead(path, _state_of(path), self._start(path, kind)))

    def _start(self, path: Path, kind: str) -> Future[Extracted]:
        if self._thread is None:
            self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="reader", daemon=True)
            self._thread.start()
        loop, _ = self._loop.result()
        return asyncio.run_coroutine_threadsafe(self._pool.document(path, kind), loop)

    async def _serve(self) -> None:
        end = asyncio.Event()
        self._loop.set_result((asyncio.get_running_loop(), end))
        try:
            await end.wait()
        finally:
            await self._pool.aclose()

    def close(self) -> None:
        """End the workers, also those that are reading."""
        if self._thread is None:
            return
        loop, end = self._loop.result()
        if self._thread.is_alive():
            loop.call_soon_threadsafe(end.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
