"""The worker processes that extract text: started when needed, killed when a page takes too long, and replaced.

The loop only waits for pipes. Answers are JSON, never pickles: a parser that a page has taken over can say nothing
here but text.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, Final

from agent.sources.pages.errors import PageError
from agent.sources.pages.extract import MAX_TEXT_CHARS, Extracted, How, Kind
from agent.sources.pages.worker import LENGTH

_PROGRAM: Final = "agent.sources.pages.worker"
START_SECONDS: Final = 20.0
"""For a process to start and to load its libraries; a second on a slow machine."""
PAGES_PER_WORKER: Final = 500
"""Then it is replaced: parsers leak."""
MAX_ANSWER_BYTES: Final = 6 * MAX_TEXT_CHARS + 65_536


class _Lost(Exception):
    """The extraction of a page failed, or its worker died or did not end in time; the text is the reason."""


@dataclass(eq=False)
class _Worker:
    process: asyncio.subprocess.Process
    pages: int = 0

    async def ask(self, head: bytes, body: bytes, seconds: float) -> dict[str, Any]:
        """Have one page extracted.

        Raises:
            _Lost: it died, or it did not end in time.
        """
        writer, reader = self.process.stdin, self.process.stdout
        assert writer is not None
        assert reader is not None
        self.pages += 1
        try:
            async with asyncio.timeout(START_SECONDS):
                writer.write(LENGTH.pack(len(head)) + head + LENGTH.pack(len(body)) + body)
                await writer.drain()
                await _read(reader)
            async with asyncio.timeout(seconds):
                return await _read(reader)
        except TimeoutError as error:
            raise _Lost(f"its text was not found in {seconds:g} s") from error
        except (OSError, EOFError, ValueError) as error:
            raise _Lost("the extraction broke on it") from error

    async def kill(self) -> None:
        """End it at once, whatever it is doing, and wait until it is gone."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
        if self.process.stdin is not None:
            self.process.stdin.close()
        await self.process.wait()


class Workers:
    """A few processes, used in turn."""

    def __init__(
        self, *, count: int = 2, seconds: float = 3.0, megabytes: int = 1024, command: Sequence[str] = ()
    ) -> None:
        """Start nothing yet.

        Args:
            count: processes at the same time.
            seconds: for one page; the fast extractor then gets half of it once more, in a new process.
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

    async def extract(self, body: bytes, *, kind: Kind, charset: str = "", url: str = "") -> Extracted:
        """Find the text of a page; where the whole extraction fails on HTML, the fast one gets a try.

        Raises:
            PageError: no text was found (`unreadable`).
        """
        try:
            try:
                found = await self._extract(body, kind, charset, url, how="whole", seconds=self._seconds)
            except _Lost:
                if kind != "html":
                    raise
                found = await self._extract(body, kind, charset, url, how="fast", seconds=self._seconds / 2)
        except _Lost as error:
            raise PageError(str(error), kind="unreadable") from error
        if not found.text:
            raise PageError("it holds no readable text", kind="unreadable")
        return found

    async def _extract(self, body: bytes, kind: Kind, charset: str, url: str, *, how: How, seconds: float) -> Extracted:
        asked = {"kind": kind, "charset": charset, "url": url, "how": how, "seconds": seconds * 0.7}
        async with self._free:
            worker = await self._take()
            fit = False
            try:
                answer = await worker.ask(json.dumps(asked).encode(), body, seconds)
                fit = "error" not in answer and worker.pages < PAGES_PER_WORKER
            finally:
                await self._give(worker, fit=fit)
        if "error" in answer:
            raise _Lost(str(answer["error"])[:100])
        return Extracted(**{field.name: str(answer.get(field.name, "")) for field in fields(Extracted)})

    async def _take(self) -> _Worker:
        if self._closed:
            raise PageError("the extraction is closed", kind="unreadable")
        while self._idle:
            worker = self._idle.pop()
            if worker.process.returncode is None:
                return worker
            self._all.remove(worker)
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
            raise PageError("no process can be started to find its text", kind="unreadable") from error
        worker = _Worker(process)
        self._all.append(worker)
        return worker

    async def _give(self, worker: _Worker, *, fit: bool) -> None:
        """Keep a worker for the next page, or end it: also when whoever waited for it gave up in the middle."""
        if fit and not self._closed:
            self._idle.append(worker)
            return
        if worker in self._all:  # else everything was closed meanwhile
            self._all.remove(worker)
        await worker.kill()

    async def aclose(self) -> None:
        """End every process."""
        self._closed = True
        self._idle.clear()
        workers, self._all = self._all, []
        for worker in workers:
            await worker.kill()


async def _read(reader: asyncio.StreamReader) -> dict[str, Any]:
    size = LENGTH.unpack(await reader.readexactly(LENGTH.size))[0]
    if size > MAX_ANSWER_BYTES:
        raise ValueError("the answer is too long")
    answer = json.loads(await reader.readexactly(size))
    if not isinstance(answer, dict):
        raise ValueError("the answer is no object")
    return answer  # pyright: ignore[reportUnknownVariableType]
