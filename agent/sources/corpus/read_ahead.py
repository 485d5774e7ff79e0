"""Reads files ahead in a few worker processes at once, and gives them in the order in which they are wanted."""

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import LifoQueue
from types import TracebackType
from typing import Final, Self

from agent.cores import cores
from agent.sources.corpus.extract import Extracted
from agent.sources.corpus.reader import FileReader

MOST_WORKERS: Final = 8
"""Each one holds an extraction library in memory."""


class ReadAhead:
    """Is asked for files in a known order, and has read them by then."""

    def __init__(self, files: Iterable[tuple[Path, str]], *, workers: int | None = None) -> None:
        """Plan to read; nothing is started before the first file is asked for.

        Args:
            files: path and kind of each file, in the order in which they will be asked for.
            workers: processes; None: one for each processor.
        """
        count = workers or min(cores(), MOST_WORKERS)
        self._planned = iter(files)
        self._readers = [FileReader() for _ in range(count)]
        self._idle: LifoQueue[FileReader] = LifoQueue()  # the one that was used last is warm
        for reader in self._readers:
            self._idle.put(reader)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="read-ahead")
        self._waiting: deque[tuple[Path, Future[Extracted]]] = deque()

    def read(self, path: Path, kind: str) -> Extracted:
        """Give the text of the file that comes next.

        Raises:
            ExtractError: it has no text that can be read, or reading it took too long.
        """
        self._plan()
        ahead, text = self._waiting.popleft()
        assert ahead == path, f"{path} is asked for, and {ahead} was to come"
        self._plan()
        return text.result()

    def _plan(self) -> None:
        """Keep every worker busy, and as many files again in memory, no more."""
        while len(self._waiting) < 2 * len(self._readers) and (following := next(self._planned, None)):
            self._waiting.append((following[0], self._threads.submit(self._read, *following)))

    def _read(self, path: Path, kind: str) -> Extracted:
        reader = self._idle.get()
        try:
            return reader.read(path, kind)
        finally:
            self._idle.put(reader)

    def close(self) -> None:
        """End the workers, also those that are reading."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for reader in self._readers:
            reader.close()
        self._threads.shutdown(wait=True)
        for reader in self._readers:
            reader.close()  # a thread may have started its worker just before

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
