"""Reads files in a few worker processes, ahead of the caller where it knows which files come.

A parser that hangs, crashes or eats memory costs one file only.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from agent.cores import cores
from agent.sources.extract.pool import ExtractPool
from agent.sources.extract.text import Extracted

SECONDS: Final = 60.0
"""A book of a thousand pages takes less."""
MEGABYTES: Final = 4096
"""Address space of a worker, where the system can limit it."""
MOST_WORKERS: Final = 8
"""Each one holds an extraction library in memory."""


class FileReader:
    """Owns worker processes and the event loop that waits for them, in a thread."""

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
        self._ahead: deque[tuple[Path, Future[Extracted]]] = deque()
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
        if self._ahead and self._ahead[0][0] == path:
            text = self._ahead.popleft()[1]
            self._read_ahead()
        else:
            text = self._start(path, kind)
        return text.result()

    def _read_ahead(self) -> None:
        """Keep every worker busy, and as many files again in memory, no more."""
        while len(self._ahead) < self._most_ahead and (following := next(self._planned, None)):
            self._ahead.append((following[0], self._start(*following)))

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
