"""A server on 127.0.0.1 that answers chat completions in one piece, as the test wants."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from agent.outbound.llm import LlmClient
from agent.outbound.retries import Retries


@dataclass
class ReaderServer:
    """What it says to every request, and the requests."""

    message: dict[str, Any] = field(default_factory=lambda: {"role": "assistant", "content": "Frank Herbert"})
    first: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What it says before that, one to each request."""
    finish: str = "stop"
    status: int = 200
    plain: str = ""
    """Sent instead, as text."""
    hangs: bool = False
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client went away before it got an answer."""
    url: str = ""

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.post("/v1/chat/completions")
        async def complete(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
            self.requests.append(await request.json())
            self.requested.set()
            if self.hangs:
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                self.left.set()
            if self.plain:
                return PlainTextResponse(self.plain)
            if self.status != 200:
                return JSONResponse({"error": {"message": "out of order"}}, self.status)
            message = self.first.pop(0) if self.first else self.message
            choice = {"index": 0, "message": message, "finish_reason": self.finish}
            usage = {"prompt_tokens": 90, "completion_tokens": 3, "total_tokens": 93}
            head = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m"}
            return JSONResponse({**head, "choices": [choice], "usage": usage})

        return app


@asynccontextmanager
async def reader_server(server: ReaderServer, *, seconds: float = 10) -> AsyncGenerator[LlmClient]:
    """Serve on a free port of this machine while inside; gives a client of it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        config = uvicorn.Config(server.app(), log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
        web = uvicorn.Server(config)
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        try:
            async with LlmClient(
                base_url=server.url, model="small", api_key="sk-secret", seconds=seconds, retries=Retries(0)
            ) as client:
                yield client
        finally:
            web.should_exit = True
            await serving
