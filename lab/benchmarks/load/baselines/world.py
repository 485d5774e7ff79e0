"""The two services that all contenders ask, in one process: the instant policy, and the search that takes 100 ms.

A server of a few lines, so that it takes as little as possible of the cores that it shares with them.
"""

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from lab.benchmarks.load.baselines.policy import completion
from lab.benchmarks.load.baselines.tasks import SEARCH_SECONDS, passage_of
from lab.benchmarks.load.process import Send

_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)

Wait = Callable[[str], Awaitable[object]]
"""Is given a search's query; the search is answered when it returns."""


class World:
    """Both services. The race's search takes its time; a test's `wait` sees each one and says when it ends."""

    def __init__(self, wait: Wait | None = None) -> None:
        self._wait = wait
        self._tasks = set[asyncio.Task[None]]()
        self.turns = 0
        """Requests that the policy has answered."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Until its process or its task is ended."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), sock=(sockets or [])[0], backlog=2048)
        async with server:
            await server.serve_forever()

    def policy(self, body: bytes, answer: "Reply") -> None:
        self.turns += 1
        request = json.loads(body)
        answer(completion(request), b"text/event-stream" if request.get("stream") else b"application/json")

    def search(self, body: bytes, answer: "Reply") -> None:
        query = json.loads(body)["query"]
        found = json.dumps({"text": passage_of(query)}).encode()
        if self._wait is None:
            asyncio.get_running_loop().call_later(SEARCH_SECONDS, answer, found, b"application/json")
            return
        task = asyncio.create_task(self._held(self._wait(query), answer, found))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _held(self, wait: Awaitable[object], answer: "Reply", found: bytes) -> None:
        await wait
        answer(found, b"application/json")


Reply = Callable[[bytes, bytes], None]
"""Sends a body of this content type."""


class _Connection(asyncio.Protocol):
    """Requests of one connection, one after the other."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._held = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        head, ended, rest = self._held.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        size = int(length[1]) if length else 0
        if not ended or len(rest) < size:
            return
        body, self._held = rest[:size], rest[size:]
        searches = b"/search" in head.split(b"\r\n", 1)[0]
        (self._world.search if searches else self._world.policy)(body, self._answer)

    def _answer(self, body: bytes, kind: bytes) -> None:
        if self._transport and not self._transport.is_closing():
            head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n" % (kind, len(body))
            self._transport.write(head + body)


def world(send: Send) -> tuple[World, socket.socket]:
    """For `lab.benchmarks.load.process.running`."""
    from server.launch import bind

    return World(), bind("127.0.0.1", 0)
