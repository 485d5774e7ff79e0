"""`cairn mcp` as a client starts it: a real process that speaks MCP on its standard streams, and nothing else."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from agent.rstool import EvidenceBundle
from agent.world import load_world
from tests.server.mcp.clients import MODES, ProgressLog, call, text_of

COMMAND = [sys.executable, "-m", "agent.cli", "mcp"]
SLOW = """
import asyncio, sys
from dataclasses import replace
from server.mcp.commands import serve_stdio
from tests.server.live import Hanging, make_service

class Reporting(Hanging):
    async def search(self, request):
        _, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
        print("a word that is no message", flush=True)
        writer.write(b"searching\\n")
        try:
            return await super().search(request)
        finally:
            writer.write(b"let go\\n")
            writer.close()

service = make_service()
agent = replace(service.agent, sources=dict.fromkeys(("web", "kg", "all"), Reporting()))
asyncio.run(serve_stdio(replace(service, agent=agent)))
"""
"""A server whose searches never end, and report at a port when they begin and when they are let go."""


class Searches:
    """Hears from the searches of the other process."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.let_go = asyncio.Event()

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readline() == b"searching\n":
            self.requested.set()
        if await reader.readline() == b"let go\n":
            self.let_go.set()
        writer.close()


@asynccontextmanager
async def slow_server() -> AsyncGenerator[tuple[StdioServerParameters, Searches]]:
    """How to start it, and what its searches report."""
    searches = Searches()
    root = str(Path(__file__).parents[3])
    async with asyncio.timeout(100), await asyncio.start_server(searches.hear, "127.0.0.1", 0) as ears:
        port = str(ears.sockets[0].getsockname()[1])
        yield StdioServerParameters(command=sys.executable, args=["-c", SLOW, port], env={"PYTHONPATH": root}), searches


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_command_searches_and_reports_its_progress(mode: str):
    question = next(one for one in load_world("test-v2").questions if one.type == "chain1")
    progress = ProgressLog()

    async def run() -> Any:
        server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env={"CAIRN_WORLD": "test-v2"})
        async with Client(server, mode=mode) as client:
            assert len((await client.list_tools()).tools) == 5
            return await client.call_tool(
                "search_evidence", {"question": question.question}, progress_callback=progress
            )

    result = asyncio.run(run())
    bundle = EvidenceBundle.model_validate(result.structured_content)
    assert bundle.outcome == "found"
    assert text_of(result) == bundle.to_prompt()
    assert progress.sentences[-1] == "Ended: answered"


@pytest.mark.slow
def test_standard_output_holds_nothing_but_messages_and_the_command_ends_with_its_input():
    async def run() -> tuple[bytes, bytes, int | None]:
        process = await asyncio.create_subprocess_exec(*COMMAND, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        requests = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ]
        lines = "".join(f"{json.dumps(message)}\n" for message in requests)
        async with asyncio.timeout(100):
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdin.write(lines.encode())
            out = await process.stdout.readline() + await process.stdout.readline()
            process.stdin.close()
            rest, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
            await process.wait()
        return out + rest, err, process.returncode

    out, err, code = asyncio.run(run())
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]
    assert code == 0
    assert b"little world" in err


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_cancel_reaches_the_run_in_less_than_a_second(mode: str):
    async def run() -> None:
        async with slow_server() as (server, searches), Client(server, mode=mode) as client:
            pending = asyncio.create_task(call(client, "search_evidence", question="q"))
            await searches.requested.wait()
            pending.cancel()
            async with asyncio.timeout(1):
                await searches.let_go.wait()
            assert (await client.list_tools()).tools

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["search_evidence", "search_evidence_start"])
def test_a_client_that_leaves_ends_the_run_and_the_process(tool: str):
    async def run() -> None:
        async with slow_server() as (server, searches):
            async with Client(server) as client:
                pending = asyncio.create_task(call(client, tool, question="q"))
                await searches.requested.wait()
            await asyncio.gather(pending, return_exceptions=True)
            await searches.let_go.wait()

    asyncio.run(run())
