"""Requests that wait at the same time, done in one call by a worker thread: for any number of event loops.

No timer holds anything back: while one call runs, the next one's requests gather.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from agent.errors import SourceError

Request = TypeVar("Request")
Found = TypeVar("Found")

TOGETHER: Final = 32
"""Requests of one call at most: few enough that the answers of one call are sent while the next one runs."""
WAITING: Final = 1024
"""Requests that may wait; who comes then is turned away at once instead of waiting for long."""


class MicroBatcher(Generic[Request, Found]):
    """One function on lists, offered to many who each have one thing to ask."""

    def __init__(
        self,
        work: Callable[[Sequence[Request]], Sequence[Found]],
        *,
        name: str,
        together: int = TOGETHER,
        waiting: int = WAITING,
        workers: int = 1,
    ) -> None:
        """Offer `work`.

        Args:
            work: gives one result for each request, in their order; each worker calls it, one call at a time.
            name: for the thread and in errors.
            together: requests of one call at most.
            waiting: requests that may wait.
            workers: threads.
        """
        self._work = work
        self._name = name
        self._together = together
        self._most = waiting
        self._queue: deque[_Waiting[Request, Found]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._workers = workers
        self._threads: list[threading.Thread] = []
        self.calls = 0
        """How often `work` was called."""

    @property
    def waiting(self) -> int:
        return len(self._queue)

    async def ask(self, request: Request) -> Found:
        """Have one request done together with those that wait beside it. Who is cancelled takes its request away.

        Raises:
            SourceError: too many wait, or this was closed.
            Exception: what `work` raised for this request; its neighbours are not touched by it.
        """
        return await self.submit(request)

    async def aclose(self) -> None:
        """Turn away who waits, and end the threads when their calls are done."""
        with self._changed:
            self._closed = True
            left = list(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        _deliver([(one, SourceError(f"{self._name} is closed")) for one in left])
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def submit(self, request: Request) -> "asyncio.Future[Found]":
        """The same as a future of the running event loop; cancel it to leave.

        Raises:
            SourceError: too many wait, or this was closed.
        """
        future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._closed:
                raise SourceError(f"{self._name} is closed")
            if len(self._queue) >= self._most:
                why = f"{self._name} is busy: {self._most} queries are waiting already; try again in a moment"
                raise SourceError(why, kind="rate", retry_after=1.0)
            while len(self._threads) < self._workers:
                name = f"cairn-{self._name}-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
                self._threads[-1].start()
            self._queue.append(_Waiting(request, future))
            self._changed.notify()
        return future

    def _run(self) -> None:
        while batch := self._take():
            wanted = [one for one in batch if not one.future.cancelled()]
            if wanted:
                _deliver(self._done(wanted))

    def _take(self) -> "list[_Waiting[Request, Found]]":
        """What waits, as much as fits into one call; nothing when this was closed."""
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            return [self._queue.popleft() for _ in range(min(len(self._queue), self._together))]

    def _done(
        self, batch: "list[_Waiting[Request, Found]]"
    ) -> "list[tuple[_Waiting[Request, Found], Found | Exception]]":
        """Do all at once; where that fails, each by itself, so that a bad request fails alone."""
        self.calls += 1
        try:
            found = self._work([one.request for one in batch])
            assert len(found) == len(batch), "one result for each request"
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to its caller, not to this thread
            if len(batch) == 1:
                return [(batch[0], error)]
            return [result for one in batch for result in self._done([one])]
        return list(zip(batch, found, strict=True))


@dataclass(frozen=True)
class _Waiting(Generic[Request, Found]):
    """One request and its future, whose event loop it is."""

    request: Request
    future: "asyncio.Future[Found]"


def _deliver(results: "Sequence[tuple[_Waiting[Request, Found], Found | Exception]]") -> None:
    """Give each request what was found for it; each event loop is woken once for all that wait in it."""
    of: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Found], Found | Exception]]] = {}
    for one, found in results:
        of.setdefault(one.future.get_loop(), []).append((one.future, found))
    for loop, those in of.items():
        with suppress(RuntimeError):  # the loop is closed: no one waits in it any more
            loop.call_soon_threadsafe(_settle, those)


def _settle(those: "Sequence[tuple[asyncio.Future[Found], Found | Exception]]") -> None:
    for future, found in those:
        if future.done():
            continue  # its caller has left
        if isinstance(found, StopIteration):
            future.set_exception(RuntimeError("the work stopped before its end"))  # a future cannot hold the other
        elif isinstance(found, Exception):
            future.set_exception(found)
        else:
            future.set_result(found)
