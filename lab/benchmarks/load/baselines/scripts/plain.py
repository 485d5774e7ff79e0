"""A plain loop over tool calls with openai-python. The calls of one turn are made at the same time."""

import asyncio
import json
import sys
from typing import Any, Final

from openai import AsyncOpenAI
from serving import Search, serve

MOST_TURNS: Final = 10
TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search the web.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}
WORLD: Final = sys.argv[1]
CLIENT: Final = AsyncOpenAI(base_url=f"{WORLD}/v1", api_key="none", max_retries=0)
SEARCH: Final = Search(WORLD)


async def called(call: Any) -> dict[str, Any]:
    text = await SEARCH(json.loads(call.function.arguments)["query"])
    return {"role": "tool", "tool_call_id": call.id, "content": text}


async def answer(question: str) -> str:
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(MOST_TURNS):
        made: Any = await CLIENT.chat.completions.create(model="tools", messages=messages, tools=[TOOL])
        message = made.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages += [message, *await asyncio.gather(*(called(call) for call in message.tool_calls))]
    return ""


serve(answer)
