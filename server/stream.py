"""Work that ends when its client leaves, and a response that streams it as server-sent events with heartbeats."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")

Put = Callable[[bytes], None]
HEARTBEAT: Final = b": still here\n\n"
HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


class ClientGone(Exception):
    """Nobody is left to read the answer."""


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do `work` while the client is there; the request's body must have been read.

    Raises:
        ClientGone: the client left; the work was cancelled and has ended.
    """
    task = asyncio.create_task(work)
    listener = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({task, listener}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        for one in (task, listener):
            one.cancel()
        await asyncio.gather(task, listener, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """Streams what `produce` puts. Frames that come faster than the socket takes them leave together."""

    def __init__(self, produce: Callable[[Put], Awaitable[None]], *, heartbeat_seconds: float) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._produce = produce
        self._heartbeat_seconds = heartbeat_seconds
        self._frames: list[bytes] = []
        self._wake = asyncio.Event()
        self._done = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            await unless_gone(receive, self._stream(send))
        except ClientGone:
            return

    async def _stream(self, send: Send) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pump(send))
            await self._produce(self._put)
            self._done = True
            self._wake.set()

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
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
