"""Work that ends when its client leaves or the server stops, and a response that streams it with heartbeats."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")

Put = Callable[[bytes], None]
LastWords = bytes | Callable[[], bytes]
"""The frame that ends a stream when the server stops, or what makes it then."""
HEARTBEAT: Final = b": still here\n\n"
HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


class ClientGone(Exception):
    """No client is left to read the answer."""


class ServerStops(Exception):
    """The server ended the work."""


class Runs:
    """All work that is on its way for some client."""

    def __init__(self) -> None:
        self.closing = False
        """The server is to stop."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle(self) -> None:
        """Wait until none is left."""
        await self._idle.wait()

    def end(self) -> None:
        """End all of it; to be called in its event loop."""
        for task in self._tasks:
            task.cancel()

    async def unless_gone(self, receive: Receive, work: Coroutine[Any, Any, T]) -> T:
        """Do `work` while the client is there; the request's body must have been read.

        Raises:
            ClientGone: the client left; the work was cancelled and has ended.
            ServerStops: `end` was called; the work has ended.
        """
        task = self._start(work)
        listener = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({task, listener}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientGone
            if task.cancelled():
                raise ServerStops
            return task.result()
        finally:
            for one in (task, listener):
                one.cancel()
            await asyncio.gather(task, listener, return_exceptions=True)

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Do `work`, where the caller knows whether its client is there: cancelling this cancels it.

        Raises:
            ServerStops: `end` was called; the work has ended.
        """
        task = self._start(work)
        try:
            await asyncio.wait({task})
            if task.cancelled():
                raise ServerStops
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        self._idle.clear()
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._idle.set()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """Streams what `produce` puts. Frames that come faster than the socket takes them leave together."""

    stalled_seconds: float = 60.0
    """A client that takes nothing for so long has left."""

    def __init__(
        self,
        produce: Callable[[Put], Awaitable[None]],
        *,
        runs: Runs,
        last_words: LastWords,
        heartbeat_seconds: float,
    ) -> None:
        """Prepare a stream.

        Args:
            produce: puts frames; its end is the end of the stream.
            runs: where a server that stops finds the work.
            last_words: the frame that ends the stream when the server stops, or what makes it then.
            heartbeat_seconds: of silence before a comment is sent.
        """
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._produce = produce
        self._runs = runs
        self._last_words = last_words
        self._heartbeat_seconds = heartbeat_seconds
        self._frames: list[bytes] = []
        self._wake = asyncio.Event()
        self._done = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            await self._runs.unless_gone(receive, self._stream(send))
        except ClientGone:
            return
        except ServerStops:
            words = self._last_words if isinstance(self._last_words, bytes) else self._last_words()
            await send({"type": "http.response.body", "body": words, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, send: Send) -> None:
        gone = False
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(send))
                await self._produce(self._put)
                self._done = True
                self._wake.set()
        except* ClientGone:
            gone = True
        if gone:
            raise ClientGone

    def _put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._wake.set()

    async def _pump(self, send: Send) -> None:
        """Send frames as they come, and a comment whenever nothing came for a while."""
        while not self._done or self._frames:
            try:
                async with asyncio.timeout(self._heartbeat_seconds):
                    await self._wake.wait()
            except TimeoutError:
                self._frames.append(HEARTBEAT)
            self._wake.clear()
            body, self._frames = b"".join(self._frames), []
            if body:
                await self._send(send, body)

    async def _send(self, send: Send, body: bytes) -> None:
        """Send it, as long as the client reads at all: one that never does must not hold what its run holds."""
        try:
            async with asyncio.timeout(self.stalled_seconds):
                await send({"type": "http.response.body", "body": body, "more_body": True})
        except TimeoutError:
            raise ClientGone from None
