"""What stands around replicas: HAProxy with the configuration of docs/deploy, Redis, and a search engine that waits."""

import asyncio
import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

CONFIG = Path(__file__).parents[3] / "docs" / "deploy" / "haproxy.cfg"
HOLD = "hold"
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


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
    with subprocess.Popen(
        [haproxy, "-db", "-f", str(CONFIG)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            wait_for_port(int(own.rpartition(":")[2]), process)
            yield f"http://{own}"
        finally:
            process.kill()


def wait_for_port(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Until somebody listens there; a process that ended before is an error with what it said."""
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read().decode())


@contextmanager
def redis() -> Generator[str]:
    """The URL of an empty Redis of our own."""
    if not shutil.which("redis-server"):
        pytest.skip("there is no redis-server here")
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            wait_for_port(port, process)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()


@dataclass(frozen=True)
class Replica:
    address: str
    process: "subprocess.Popen[str]"


@contextmanager
def started(*arguments: str) -> Generator[Replica]:
    """`python -m ARGUMENTS`, which tells its address on either of its outputs."""
    command = [sys.executable, "-m", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said: list[str] = []
        try:
            for line in process.stdout:
                said.append(line)
                if found := _ADDRESS.search(line):
                    yield Replica(found[0], process)
                    break
            else:
                raise AssertionError("".join(said))
        finally:
            process.kill()


@dataclass
class SearchEngine:
    """Answers as SearXNG does, with one result; a query that says `hold` waits until it may go on."""

    asked: list[str] = field(default_factory=list[str])
    go: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                query = parse_qs(urlsplit(head.split(b" ")[1].decode()).query).get("q", [""])[0]
                self.asked.append(query)
                if HOLD in query:
                    await self.go.wait()
                found = [{"url": "https://example.org/t", "title": query, "content": "Somebody comes from Trieste."}]
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
