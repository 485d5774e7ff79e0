"""What stands around replicas: HAProxy with the configuration of docs/deploy, Redis, and a search engine that waits."""

import asyncio
import json
import re
import shutil
import socket
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.processes import Process, running

CONFIG = Path(__file__).parents[3] / "docs" / "deploy" / "haproxy.cfg"
HOLD = "hold"
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+(?=\D)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def balancer(part: str, addresses: Sequence[str]) -> Generator[str]:
    """HAProxy before two servers; gives its address.

    Args:
        part: `agent` or `documents`, as the configuration's frontends are called.
        addresses: of the two.
    """
    haproxy = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if haproxy is None:
        pytest.skip("there is no haproxy here")
    hosts = [address.removeprefix("http://") for address in addresses]
    own, other = (f"127.0.0.1:{free_port()}" for _ in range(2))
    unused = "documents" if part == "agent" else "agent"
    environment = {f"{part.upper()}": own, f"{unused.upper()}": other}
    environment |= dict(zip((f"{part.upper()}_ONE", f"{part.upper()}_TWO"), hosts, strict=True))
    with running([haproxy, "-db", "-f", str(CONFIG)], env=environment) as program:
        program.wait_for(lambda: listens(own))
        yield f"http://{own}"


def listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


@contextmanager
def redis() -> Generator[str]:
    """The URL of an empty Redis of our own."""
    if not shutil.which("redis-server"):
        pytest.skip("there is no redis-server here")
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with running(command) as program:
        program.wait_for(lambda: listens(f"127.0.0.1:{port}"))
        yield f"redis://127.0.0.1:{port}/0"


@dataclass(frozen=True)
class Replica:
    address: str
    process: Process


@contextmanager
def started(*arguments: str) -> Generator[Replica]:
    """`python -m ARGUMENTS`, which prints its address on either of its outputs."""
    with running([sys.executable, "-m", *arguments]) as program:
        found = program.wait_for(lambda: _ADDRESS.search(program.said))
        yield Replica(found[0], program.process)


@dataclass
class SearchEngine:
    """Answers as SearXNG does, with one result; a query that says `hold` waits until it may go on."""

    queries: list[str] = field(default_factory=list[str])
    go: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                query = parse_qs(urlsplit(head.split(b" ")[1].decode()).query).get("q", [""])[0]
                self.queries.append(query)
                if HOLD in query:
                    await self.go.wait()
                found = [{"url": "https://example.org/t", "title": query, "content": "She comes from Trieste."}]
                body = json.dumps({"query": query, "results": found}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # it has heard enough, or was killed
        finally:
            writer.close()


@asynccontextmanager
async def search_engine() -> AsyncGenerator[SearchEngine]:
    engine = SearchEngine()
    server = await asyncio.start_server(engine.answer, "127.0.0.1", 0)
    engine.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield engine
    finally:
        engine.go.set()
        server.close()
