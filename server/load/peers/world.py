"""The two services that all contenders ask, in one process: the instant policy, and the search that takes 100 ms.

A server of a few lines, so that it takes as little as possible of the cores that it shares with them.
"""

import asyncio
import json
import re
import socket
from typing import Final

from server.load.peers.policy import completion
from server.load.peers.tasks import SEARCH_SECONDS, passage_of
from server.load.process import Tell

_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class _Connection(asyncio.Protocol):
    """Requests of one connection, one after the other."""

    def __init__(self) -> None:
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
        if b"/search" in head.split(b"\r\n", 1)[0]:
            found = json.dumps({"text": passage_of(json.loads(body)["query"])}).encode()
            asyncio.get_running_loop().call_later(SEARCH_SECONDS, self._answer, found, b"application/json")
        else:
            request = json.loads(body)
            kind = b"text/event-stream" if request.get("stream") else b"application/json"
            self._answer(completion(request), kind)

    def _answer(self, body: bytes, kind: bytes) -> None:
        if self._transport and not self._transport.is_closing():
            head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n" % (kind, len(body))
            self._transport.write(head + body)


class World:
    """Serves until its process is ended."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        server = await asyncio.get_running_loop().create_server(_Connection, sock=(sockets or [])[0], backlog=2048)
        await server.serve_forever()


def world(tell: Tell) -> tuple[World, socket.socket]:
    from server.launch import bind

    return World(), bind("127.0.0.1", 0)
