"""A small site on 127.0.0.1 whose pages misbehave as a test wants, and a record of every connection that is opened."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from agent.sources.pages.guard import Guard, is_public

Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Reply:
    body: bytes | str = b""
    status: int = 200
    type: str | None = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def wire(self) -> bytes:
        body = self.body.encode() if isinstance(self.body, str) else self.body
        lines = [f"HTTP/1.1 {self.status} X", f"content-length: {len(body)}", "connection: close"]
        lines += [f"content-type: {self.type}"] if self.type is not None else []
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Site:
    """Serves `pages` by path; what is not there is a 404. Keeps the paths of its requests."""

    def __init__(self, pages: Mapping[str, Reply | Handler]) -> None:
        self.pages = dict(pages)
        self.requests: list[str] = []
        self.heads: list[str] = []
        self.connections = 0
        self.open_now = 0
        self.most_open = 0
        self.port = 0

    def url(self, path: str = "/", *, host: str = "site.example.org") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            path = head.split(" ", 2)[1]
            self.requests.append(path)
            self.heads.append(head)
            page = self.pages.get(path, Reply("not here", 404))
            if isinstance(page, Reply):
                writer.write(page.wire())
                await writer.drain()
            else:
                await page(writer)
        except (OSError, EOFError):
            pass
        finally:
            self.open_now -= 1
            writer.close()


@asynccontextmanager
async def serving(pages: Mapping[str, Reply | Handler] | None = None) -> AsyncGenerator[Site]:
    site = Site(pages or {})
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        try:
            await site.serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Names:
    """A name server of one's own: each name has a list of answers, the last of which is given for ever after."""

    def __init__(self, answers: Mapping[str, Sequence[Sequence[str]]] | None = None) -> None:
        self.answers = {name: list(found) for name, found in (answers or {}).items()}
        self.requests: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.requests.append(host)
        found = self.answers.get(host.removesuffix("."))
        if found is None:
            raise OSError("no such name")
        return found.pop(0) if len(found) > 1 else found[0]


def guard_for(*sites: Site, names: Names | None = None, ports: Sequence[int] = ()) -> Guard:
    """The usual guard, but for the sites of the test: site.example.org is the first one, on 127.0.0.1."""
    open_ports = [site.port for site in sites]
    return Guard(
        ports=(80, 443, *open_ports, *ports),
        allow=lambda address, port: is_public(address) or (address == "127.0.0.1" and port in open_ports),
        resolve=names or Names({"site.example.org": [["127.0.0.1"]]}),
    )


_connects: list[list[Any]] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        for record in _connects:
            record.append(args[1])


sys.addaudithook(_hook)


@contextmanager
def connections() -> Generator[list[Any]]:
    """Record the address of every socket that this process connects, wherever it does so."""
    record: list[Any] = []
    _connects.append(record)
    try:
        yield record
    finally:
        _connects.remove(record)
