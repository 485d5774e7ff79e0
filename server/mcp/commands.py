"""`cairn mcp`: RSTool for MCP clients that start their servers themselves. Standard output holds nothing but MCP."""

import asyncio
from typing import TYPE_CHECKING

import typer

from agent.cli.console import note
from agent.cli.options import Load, with_agent_options

if TYPE_CHECKING:
    from server.chat.service import Service

_EXAMPLES = """
[bold]Examples[/bold]

claude mcp add cairn -- cairn mcp

cairn mcp --corpus ./reports --policy openai --base-url http://127.0.0.1:11434/v1 --model qwen3:8b
"""


def register(app: typer.Typer) -> None:
    """Add `mcp` to the root."""
    app.command("mcp", epilog=_EXAMPLES)(with_agent_options(serve_mcp))


def serve_mcp(*, load: Load) -> None:
    """Offer the search for evidence to an MCP client, over standard input and output.

    The client starts this command, which ends when the client leaves. A
    running server (cairn serve) offers the same over HTTP at /mcp.
    """
    from agent.build.agent import notices
    from agent.cli.model import ready
    from server.launch import make_service

    settings = ready(load())
    for notice in notices(settings):
        note(notice)
    asyncio.run(serve_stdio(make_service(settings)))


async def serve_stdio(service: "Service") -> None:
    """Answer until standard input ends; then end what still runs, and let go of the service.

    While it serves, whatever else writes to standard output writes to standard error.
    """
    from mcp.server.stdio import stdio_server

    from server.evidence.service import EvidenceService
    from server.http.stream import Runs
    from server.mcp.calls import Calls
    from server.mcp.jobs import Jobs
    from server.runs.manager import memory_run_manager

    searches = service.run_manager or memory_run_manager()
    evidence = EvidenceService.of(service, enter=service.enter)
    server = Calls(evidence, Jobs(searches), Runs()).server()
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        if service.libraries:
            await service.libraries.aclose()
        await searches.aclose()
        await service.aclose()
