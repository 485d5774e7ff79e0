"""`cairn mcp`: RSTool for MCP clients that start their servers themselves. Standard output holds nothing but MCP."""

import asyncio

import typer

from agent.cli.console import note
from agent.cli.options import Load, with_agent_options

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
    from server.mcp.stdio import serve_stdio

    settings = ready(load())
    for notice in notices(settings):
        note(notice)
    asyncio.run(serve_stdio(make_service(settings)))
