"""Servers that a test holds in its hand: sources that wait, a wire that can be cut, and a run that is made beforehand."""

import asyncio
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import uvicorn

from agent.sources.base import SearchRequest, SearchResult
from tests.agent.rstool.reader_server import ReaderServer
from tests.server.live import FakeSource


@dataclass
class HeldSource:
    """A source that answers when the test, in another thread, says so."""

    name: str = "web"
    requested: threading.Event = field(default_factory=threading.Event)
    _go: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop | None = None

    async def search(self, request: SearchRequest) -> SearchResult:
        self._loop = asyncio.get_running_loop()
        self.requested.set()
        await self._go.wait()
        return await FakeSource(self.name, url="https://example.org/falls").search(request)

    def go(self) -> None:
        assert self.requested.wait(10)
        assert self._loop
        self._loop.call_soon_threadsafe(self._go.set)


class Wire:
    """Carries bytes between a browser and a server, until it is cut."""

    def __init__(self, address: str) -> None:
        self._to = (urlsplit(address).hostname or "", urlsplit(address).port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.connections = 0
        self.refuses = False
        """Whether new connections are closed at once."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> int:
        """End every connection that there is; how many there have been up to now."""
        with self._lock:
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            return self.connections

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.refuses:
                near.close()
                continue
            far = socket.create_connection(self._to)
            with self._lock:  # counted once `cut` reaches it, or a cut could miss one that the test has seen
                self._open |= {near, far}
                self.connections += 1
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while piece := one.recv(65536):
                other.sendall(piece)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        one.close()  # the other one is closed by the reader at its other end


@contextmanager
def wire(address: str) -> Generator[Wire]:
    """A wire to the server, under an address of its own."""
    made = Wire(address)
    thread = threading.Thread(target=made.serve, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.close()
        thread.join(5)


@contextmanager
def reader() -> Generator[str]:
    """The address of another model, which answers every question with "Frank Herbert"."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            ReaderServer().app(), log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            thread.join()
