"""One request at a time with a pause between, for an API that asks this of each client, however many processes it runs.

The turn is a lock on a small file that every process of the user opens; the file holds when the last request began.
Where that file can't be used, the queue holds within this process only, and the log says so once.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Final
from weakref import WeakKeyDictionary

from agent.errors import SetupError
from agent.files.own import lock_file, private_file, private_folder

_TRIES_A_PAUSE: Final = 30
"""How often a caller looks whether another event loop or process has ended its turn."""
_STAMP_BYTES: Final = 32
_log = logging.getLogger(__name__)


class PoliteQueue:
    """One request at a time, each at least `interval_seconds` after the previous one began, in all event loops."""

    def __init__(
        self, interval_seconds: float, *, file: Path | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """Open nothing yet.

        Args:
            interval_seconds: from the beginning of one request to the beginning of the next.
            file: shared with other processes; its folder is made for the user alone. None: this process only.
            clock: seconds, the same in all processes.
        """
        self.interval_seconds = interval_seconds
        self.file = file
        self._clock = clock
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._busy = threading.Lock()
        self._last = float("-inf")
        self._held: IO[bytes] | None = None
        """The locked file, of the task that holds `_busy`."""
        self._warned = False

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for one's turn, and hold it."""
        line = self._lines.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(1))
        async with line:
            wait = self._begin()
            while wait:
                await asyncio.sleep(wait)
                wait = self._begin()
            try:
                yield
            finally:
                self._end()

    def _begin(self) -> float:
        """Take the turn and give 0, or give the seconds until the next try."""
        retry = self.interval_seconds / _TRIES_A_PAUSE
        if not self._busy.acquire(blocking=False):
            return retry
        try:
            self._held = self._open()
            locked = self._held is None or self._lock(self._held)
            wait = self._left() if locked else retry
        except BaseException:
            self._end()
            raise
        if wait > 0:
            self._end()
            return wait
        self._last = self._clock()
        if self._held is not None:
            self._write(self._held)
        return 0.0

    def _end(self) -> None:
        held, self._held = self._held, None
        try:
            if held is not None:
                held.close()  # which unlocks it
        finally:
            self._busy.release()

    def _left(self) -> float:
        """Seconds until the next request may begin. A clock that was set back by more than a pause delays none."""
        now = self._clock()
        since = min(abs(now - last) for last in (self._last, self._read()))
        return max(0.0, self.interval_seconds - since)

    def _read(self) -> float:
        """When the last request of any process began; long ago where the file says nothing."""
        if self._held is not None:
            try:
                return float(self._held.read(_STAMP_BYTES))
            except (OSError, ValueError):
                pass
        return float("-inf")

    def _write(self, held: IO[bytes]) -> None:
        try:
            held.seek(0)
            held.write(b"%-*.6f" % (_STAMP_BYTES, self._last))
        except OSError as error:  # a full disk
            self._warn(error)

    def _open(self) -> IO[bytes] | None:
        if self.file is None:
            return None
        try:
            file = self.file.expanduser()
            private_folder(file.parent)
            return os.fdopen(os.open(private_file(file), os.O_RDWR | getattr(os, "O_BINARY", 0)), "r+b", buffering=0)
        except (OSError, RuntimeError, SetupError) as error:  # RuntimeError: there is no home folder
            self._warn(error)
            return None

    def _lock(self, file: IO[bytes]) -> bool:
        try:
            return lock_file(file, wait=False)
        except OSError as error:  # a file system without locks
            self._warn(error)
            return True

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("%s cannot be used (%s); other processes don't wait for this one's requests", self.file, error)
