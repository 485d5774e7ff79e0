"""One connection for many calls: when a silent server is started again, and what that does to other calls."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from agent.errors import SourceError
from agent.sources.base import SearchRequest, ask
from agent.sources.mcp.source import McpSource
from tests.virtual_clock import now, run

TOOL = {"name": "search", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}}
NEVER = "1e6"


@dataclass
class InMemory:
    """A server without a process: the query says after how many seconds it answers."""

    broke: bool = False
    why: str = ""
    status: int = 0

    def call(self) -> "AbstractContextManager[InMemory]":
        return nullcontext(self)

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, out = anyio.create_memory_object_stream[SessionMessage](0)

        async def reply(request: dict[str, Any]) -> None:
            result, seconds = _result(request)
            await anyio.sleep(seconds)
            answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
            message = {"jsonrpc": "2.0", "id": request["id"], **answer}
            await into.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))

        async def serve() -> None:
            async for message in out:
                request = message.message.model_dump(by_alias=True, exclude_unset=True)
                if "id" in request:
                    group.start_soon(reply, request)

        with into, incoming, outgoing, out:
            async with anyio.create_task_group() as group:
                group.start_soon(serve)
                yield incoming, outgoing
                group.cancel_scope.cancel()


def _result(request: dict[str, Any]) -> tuple[dict[str, Any] | None, float]:
    """Of a request, and the seconds until it comes."""
    match request["method"]:
        case "initialize":
            version: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            return {**version, "serverInfo": {"name": "memory", "version": "1"}}, 0.0
        case "tools/list":
            return {"tools": [TOOL]}, 0.0
        case "tools/call":
            query = request["params"]["arguments"]["query"]
            return {"content": [{"type": "text", "text": f"answered after {query} s"}]}, float(query)
        case _:
            return None, 0.0


@dataclass
class Counting:
    """A source whose calls have 20 s, and how often its server was started."""

    started: int = 0
    source: McpSource = field(init=False)

    def __post_init__(self) -> None:
        self.source = McpSource("papers", self.start, seconds=20.0)

    def start(self) -> InMemory:
        self.started += 1
        return InMemory()

    async def find(self, query: str, *, seconds: float = 3600.0) -> str:
        """What one search finds, or says."""
        try:
            found = await ask(self.source, SearchRequest(query, limit=1), seconds=seconds)
        except SourceError as error:
            return f"{error.kind}: {error}"
        return found.passages[0].text


def test_callers_with_little_time_do_not_restart_a_server_that_answers():
    async def scene() -> None:
        papers = Counting()
        other = asyncio.create_task(papers.find("15"))
        for _ in range(10):
            assert (await papers.find("2", seconds=1.0)).startswith("timeout: papers did not answer in ")
        assert await other == "answered after 15 s"
        assert await papers.find("2") == "answered after 2 s"
        assert papers.started == 1
        await papers.source.aclose()

    run(scene())


def test_callers_with_little_time_are_counted_once_however_many_wait_at_the_same_time():
    async def scene() -> None:
        papers = Counting()
        await asyncio.gather(*(papers.find(NEVER, seconds=10.0) for _ in range(8)))
        assert await papers.find("0") == "answered after 0 s"
        assert papers.started == 1
        await papers.source.aclose()

    run(scene())


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_server_that_is_silent_for_twice_its_own_time_is_restarted(share: float):
    async def scene() -> None:
        papers = Counting()
        calls = int(2 / share)
        for call in range(calls):
            assert papers.started == min(call, 1)
            await papers.find(NEVER, seconds=20.0 * share)
        assert now() == pytest.approx(40.0, abs=0.5)
        assert await papers.find("1") == "answered after 1 s"
        assert papers.started == 2
        await papers.source.aclose()

    run(scene())


def test_a_restart_ends_no_other_call():
    async def scene() -> None:
        papers = Counting()
        silent = asyncio.create_task(papers.find(NEVER))
        await silent
        silent = asyncio.create_task(papers.find(NEVER))
        await asyncio.sleep(15.0)
        other = asyncio.create_task(papers.find("10"))
        await silent
        assert await papers.find("1") == "answered after 1 s"
        assert papers.started == 2
        assert await other == "answered after 10 s"
        await papers.source.aclose()

    run(scene())


def test_a_call_that_is_on_its_way_when_the_source_is_closed_says_so():
    async def scene() -> str:
        papers = Counting()
        call = asyncio.create_task(papers.find(NEVER))
        await asyncio.sleep(1.0)
        await papers.source.aclose()
        return await call

    assert run(scene()) == "upstream: papers was closed"
