"""A server on 127.0.0.1 that speaks the OpenAI chat format as the test wants, well or badly."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

Says = str | dict[str, str]


@dataclass(frozen=True)
class Reply:
    """One answer. A string is content, a dict is a delta."""

    says: Sequence[Says] = ()
    finish: str | None = "stop"
    completion_tokens: int | None = None
    honours_stop: bool = True
    bytes_at_once: int = 0
    """Cut the stream into pieces of this number of bytes; 0 leaves the frames whole."""
    dies: bool = False
    """The connection breaks where `finish` would come."""
    hangs: bool = False
    """Nothing more comes where `finish` would come."""
    raw: str = ""
    """Sent as it is, instead of all that."""


@dataclass(frozen=True)
class Refusal:
    """An error instead of an answer."""

    status: int
    error: dict[str, Any] | list[dict[str, Any]] = field(default_factory=lambda: {"message": "no"})
    """A list is the whole body."""
    headers: dict[str, str] = field(default_factory=lambda: {"retry-after-ms": "1"})


@dataclass
class ChatServer:
    """What it answers, in order (the last one again and again), and the requests."""

    replies: list[Reply | Refusal]
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    connections: set[int] = field(default_factory=set[int])
    """The ports that the requests came from."""
    url: str = ""
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with the first request."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a stream ended, whichever side ended it."""

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.post("/v1/chat/completions")
        async def complete(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
            body = await request.json()
            self.requests.append(body)
            self.connections.add(request.client.port if request.client else 0)
            self.requested.set()
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            if isinstance(reply, Refusal):
                body = reply.error if isinstance(reply.error, list) else {"error": reply.error}
                return JSONResponse(body, reply.status, headers=reply.headers)
            return StreamingResponse(self._stream(reply, body), media_type="text/event-stream")

        return app

    async def _stream(self, reply: Reply, body: dict[str, Any]) -> AsyncGenerator[bytes]:
        try:
            for frame in _frames(reply, body.get("stop") or []):
                data = frame.encode()
                step = reply.bytes_at_once or len(data)
                for start in range(0, len(data), step):
                    yield data[start : start + step]
            if reply.dies:
                raise ConnectionResetError("as the test wants")
            if reply.hangs:
                await asyncio.Event().wait()
            for frame in _end(reply):
                yield frame.encode()
        finally:
            self.left.set()


def _frames(reply: Reply, stop: Sequence[str]) -> list[str]:
    if reply.raw:
        return [reply.raw]
    frames = [_frame({"role": "assistant", "content": ""})]
    said = ""
    for says in reply.says:
        delta = {"content": says} if isinstance(says, str) else says
        said += delta.get("content", "")
        ends = [at for mark in stop if (at := said.find(mark)) >= 0] if reply.honours_stop else []
        if ends:  # as servers do: the stop text and what follows is dropped
            content = delta.get("content", "")
            frames.append(_frame({"content": content[: max(0, len(content) - (len(said) - min(ends)))]}))
            break
        frames.append(_frame(delta))
    return frames


def _end(reply: Reply) -> list[str]:
    if reply.raw:
        return []
    frames: list[str] = []
    if reply.finish is not None:
        frames.append(_frame({}, finish=reply.finish))
    if reply.completion_tokens is not None:
        usage = {"prompt_tokens": 9, "completion_tokens": reply.completion_tokens, "total_tokens": 9}
        frames.append(f"data: {json.dumps({**_HEAD, 'choices': [], 'usage': usage})}\n\n")
    return [*frames, "data: [DONE]\n\n"]


_HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def _frame(delta: dict[str, str], *, finish: str | None = None) -> str:
    chunk = {**_HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"


@asynccontextmanager
async def chat_server(*replies: Reply | Refusal) -> AsyncGenerator[ChatServer]:
    """Serve on a free port of this machine while inside."""
    server = ChatServer(list(replies))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        config = uvicorn.Config(server.app(), log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
        web = uvicorn.Server(config)
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        try:
            yield server
        finally:
            web.should_exit = True
            await serving
