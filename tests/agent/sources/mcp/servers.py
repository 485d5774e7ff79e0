"""How the tests start a server, search it once, and see what is left of it."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from agent.evidence import Passage
from agent.sources.base import SearchRequest, ask
from agent.sources.mcp.http import HttpTransport
from agent.sources.mcp.source import McpSource
from agent.sources.mcp.stdio import StdioTransport

HERE: Final = Path(__file__).parent
GOOD: Final = [sys.executable, str(HERE / "server.py")]
RAW: Final = [sys.executable, str(HERE / "raw_server.py")]
KEY: Final = "sesame-0123456789"
_T = TypeVar("_T")


def stdio(command: list[str], *, environment: dict[str, str] | None = None, **options: Any) -> McpSource:
    """A source whose server is this command."""
    return McpSource("papers", lambda: StdioTransport(command, environment=environment or {}), **options)


def over_http(url: str, *, key: str = "", seconds: float = 10.0, **options: Any) -> McpSource:
    """A source whose server is at this URL."""
    return McpSource(
        "papers",
        lambda: HttpTransport(url, key=key, seconds=seconds),
        seconds=seconds,
        secrets=[key],
        **options,
    )


def use(source: McpSource, work: Callable[[], Awaitable[_T]], *, seconds: float = 60.0) -> _T:
    """Do something with a source, and close it; what hangs is a failure."""

    async def bounded() -> _T:
        async with asyncio.timeout(seconds):
            try:
                return await work()
            finally:
                await source.aclose()

    return asyncio.run(bounded())


async def find(
    source: McpSource, query: str = "aurora falls", *, limit: int = 5, seconds: float = 50.0
) -> list[Passage]:
    return list((await ask(source, SearchRequest(query, limit=limit), seconds=seconds)).passages)


def found(source: McpSource, query: str = "aurora falls", *, limit: int = 5, seconds: float = 50.0) -> list[Passage]:
    """The passages of one search."""
    return use(source, lambda: find(source, query, limit=limit, seconds=seconds))


def said(passages: list[Passage]) -> list[tuple[str, str, str, str]]:
    return [(p.title, p.text, p.url, p.date) for p in passages]


@contextmanager
def http_server(key: str = "") -> Generator[str]:
    """The good server at a port of its own; its URL."""
    with subprocess.Popen([*GOOD, "0", key], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False


def ends(pid: int, *, seconds: float = 5.0) -> bool:
    """Whether a process ends in time."""
    until = time.monotonic() + seconds
    while runs(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not runs(pid)
