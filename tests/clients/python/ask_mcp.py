"""What the MCP Python client sees over HTTP: the one call with its progress, and start, then the result."""

import asyncio
import json
import sys
from typing import Any

from mcp import Client

BASE_URL, QUESTION = sys.argv[1:3]
ARGUMENTS = {"question": QUESTION}


def seen(result: Any, **more: Any) -> dict[str, Any]:
    if result.is_error:
        raise SystemExit(result.content[0].text)
    return {"bundle": result.structured_content, "text": result.content[0].text, **more}


async def called(client: Client) -> dict[str, Any]:
    steps: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message or "")

    return seen(await client.call_tool("search_evidence", ARGUMENTS, progress_callback=hear), steps=steps)


async def started(client: Client) -> dict[str, Any]:
    begun: Any = await client.call_tool("search_evidence_start", ARGUMENTS)
    waiting = {"id": begun.structured_content["id"], "wait_seconds": 25}
    return seen(await client.call_tool("search_evidence_result", waiting))


async def ask() -> dict[str, Any]:
    async with Client(f"{BASE_URL.removesuffix('/v1')}/mcp") as client:
        return {"called": await called(client), "started": await started(client)}


sys.stdout.write(json.dumps(asyncio.run(ask())))
