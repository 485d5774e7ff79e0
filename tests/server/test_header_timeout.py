"""A client that does not read its answer is cut off, and one that reads slowly but steadily is not."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import Receive, Scope, Send

from server.http.header_timeout import patient

SIZE = 8 * 1024 * 1024
READ_SECONDS = 0.2


async def long_answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(SIZE).encode())]})
    await send({"type": "http.response.body", "body": b"x" * SIZE})


@asynccontextmanager
async def answering() -> AsyncGenerator[tuple[socket.socket, uvicorn.Server]]:
    """A connection that sent a request, with a small buffer of its own, and the server."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        long_answer, http=patient(20, read_seconds=READ_SECONDS), lifespan="off", log_config=None, ws="none"
    )
    server = uvicorn.Server(config)
    async with asyncio.timeout(60):
        task = asyncio.create_task(server.serve(sockets=[listener]))
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, listener.getsockname())
            await asyncio.get_running_loop().sock_sendall(connection, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            yield connection, server
        server.should_exit = True
        await task


async def until_closed(connection: socket.socket) -> int:
    """How many bytes still come."""
    total = 0
    try:
        while piece := await asyncio.get_running_loop().sock_recv(connection, 64 * 1024):
            total += len(piece)
    except ConnectionResetError:
        pass
    return total


def test_an_answer_that_no_one_reads_is_given_up() -> None:
    async def run() -> int:
        async with answering() as (connection, server):
            while not server.server_state.connections:  # noqa: ASYNC110 - the server reports it nowhere
                await asyncio.sleep(0.01)
            while server.server_state.connections:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            return await until_closed(connection)

    assert asyncio.run(run()) < SIZE


def test_an_answer_that_is_read_arrives_whole() -> None:
    async def run() -> int:
        async with answering() as (connection, _):
            total = 0
            while total < SIZE:
                total += len(await asyncio.get_running_loop().sock_recv(connection, 256 * 1024))
            await asyncio.sleep(3 * READ_SECONDS)  # and the connection stays open for the next request
            await asyncio.get_running_loop().sock_sendall(connection, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            assert await asyncio.get_running_loop().sock_recv(connection, 10)
            return total

    assert asyncio.run(run()) > SIZE
