"""One route of a chat completion's request, and one search service: what the contenders of this folder share.

They run in an environment of their own and know nothing of Cairn. FastAPI on uvicorn with its fast loop and parser.
"""

import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

Answer = Callable[[str], Awaitable[str]]
"""Question → answer."""


class Message(BaseModel):
    role: str
    content: str


class Request(BaseModel):
    model: str
    messages: list[Message]


class Search:
    """The search service of the race, as every contender asks it."""

    def __init__(self, world: str) -> None:
        limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=1000)
        self._client = httpx2.AsyncClient(base_url=world, limits=limits, trust_env=False, timeout=30)

    async def __call__(self, query: str) -> str:
        return (await self._client.post("/search", json={"query": query})).json()["text"]


def serve(answer: Answer) -> None:
    """Serve on a free port until the process is ended; its address is the first line that it says."""
    app = FastAPI()

    @app.post("/v1/chat/completions")
    async def chat(body: Request) -> dict[str, Any]:
        message = {"role": "assistant", "content": await answer(body.messages[-1].content)}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    sys.stdout.write(f"http://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])
