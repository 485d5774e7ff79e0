"""The MCP Python client with what the tests of `/mcp` and of `cairn mcp` share."""

from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

from server.shutdown import Grace

QUESTION = "Where was the director of Aurora Falls born?"
SOON = Grace(seconds=0.1, answer_seconds=0.1)
"""For a server that ends while a started search still runs: what runs on is ended, and the test does not wait for it."""
MODES = ("auto", "legacy")
"""The stateless protocol of 2026, and the one with a handshake before it."""


class ProgressLog:
    """The progress that a client received."""

    def __init__(self) -> None:
        self.numbers: list[float] = []
        self.sentences: list[str] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        self.numbers.append(progress)
        self.sentences.append(message or "")


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def call(client: Client, tool: str, **arguments: Any) -> CallToolResult:
    return await client.call_tool(tool, arguments)
