"""A small HTTP API on 127.0.0.1 that answers as its routes say, or fails to; it keeps the requests.

async with ApiServer() as server:
    server.routes["/search"] = json_reply({"results": []})          # or a function of the request
    server.routes["/slow"] = Reply(how="hang")
    await source_at(server.base).search(…)
    assert server.requests[0].params == {"q": "dune"}
"""

import asyncio
import json
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Any, Final, Literal, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

How = Literal["whole", "hang", "reset"]
BOMB_BYTES: Final = 300_000_000
_T = TypeVar("_T")


@dataclass(frozen=True)
class Reply:
    """What the server does with a request.

    whole: it answers. hang: it says nothing and keeps the connection. reset: it resets the connection in the middle
    of the body.
    """

    body: bytes = b"{}"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    how: How = "whole"


@dataclass(frozen=True)
class ApiRequest:
    """One request as it came."""

    method: str
    path: str
    """Without the query, decoded."""
    params: dict[str, str]
    """Of the query; of several of one name the last one."""
    headers: dict[str, str]
    """By names in lower case."""
    body: bytes
    target: str
    """Path and query as they came."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


Route = Reply | Callable[[ApiRequest], Reply]


def json_reply(data: object, status: int = 200, **headers: str) -> Reply:
    """Give JSON; headers as retry_after="3"."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(json.dumps(data).encode(), status, {"content-type": "application/json", **named})


def text_reply(text: str, status: int = 200, *, content_type: str = "text/html", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(text.encode(), status, {"content-type": content_type, **named})


@cache
def gzip_bomb() -> Reply:
    """Some 292 kB that become 300 MB; one gzip member, as a decoder may stop at the end of the first."""
    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(1_000_000)
    packed = b"".join(packer.compress(zeros) for _ in range(BOMB_BYTES // len(zeros))) + packer.flush()
    return Reply(packed, headers={"content-type": "application/json", "content-encoding": "gzip"})


class ApiServer:
    """Serves `routes`: replies by path, "*" for every other path; without either it answers 404."""

    def __init__(self, routes: Mapping[str, Route] | None = None) -> None:
        self.routes: dict[str, Route] = dict(routes or {})
        self.requests: list[ApiRequest] = []
        self.base = ""
        """http://127.0.0.1:PORT, once it runs."""
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "ApiServer":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            self.requests.append(request)
            route = self.routes.get(request.path) or self.routes.get("*") or Reply(b"no such route", 404)
            reply = route if isinstance(route, Reply) else route(request)
            if reply.how == "hang":
                await reader.read()  # until the client leaves
            else:
                await _answer(writer, reply)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> ApiRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    url = urlsplit(target)
    params = dict(parse_qsl(url.query, keep_blank_values=True))
    return ApiRequest(method, unquote(url.path), params, headers, body, target)


async def _answer(writer: asyncio.StreamWriter, reply: Reply) -> None:
    headers = {"content-length": str(len(reply.body)), "connection": "close", **reply.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {reply.status} Status\r\n{lines}\r\n".encode("latin-1"))
    if reply.how == "whole":
        writer.write(reply.body)
        await writer.drain()
        return
    writer.write(reply.body[: max(1, len(reply.body) // 2)])
    await writer.drain()
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing sends RST
    writer.transport.abort()


def run(test: Callable[[ApiServer], Awaitable[_T]], *, seconds: float = 10.0) -> _T:
    """Run a test beside a server of its own; one that hangs is a failure, not a wait."""

    async def bounded() -> _T:
        async with asyncio.timeout(seconds), ApiServer() as server:
            return await test(server)

    return asyncio.run(bounded())
