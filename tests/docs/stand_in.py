"""A stand-in on 127.0.0.1 for the servers of other people's models, so that what the pages show can be run.

It speaks Ollama's API as that is documented: OpenAI's under /v1, and what Cairn asks of its own.
"""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from server.launch import address_of, bind

SEARCH = "<think>I look it up.</think>\n<search>\nLina Orr\n</search>"
ANSWER = (
    "<merge>Lina Orr was born in Trieste [1].</merge>\n<evidence>\n- Lina Orr was born in Trieste. [1]\n</evidence>\n"
    "<answer>Trieste</answer>"
)
Fields = dict[str, Any]


def says(body: Fields) -> Fields:
    """A message: one call of the tool that it is given; or a search, and then an answer, where the prompt holds the rules."""
    messages: list[Fields] = body["messages"]
    if body.get("tools") and not any(message["role"] == "tool" for message in messages):
        arguments = json.dumps({"question": "Who taught Kredel Portwick?"})
        call = {"name": body["tools"][0]["function"]["name"], "arguments": arguments}
        return {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": call}]}
    spoke = any(message["role"] == "assistant" for message in messages)
    has_rules = any("<search>" in str(message.get("content")) for message in messages)
    return {"role": "assistant", "content": SEARCH if has_rules and not spoke else ANSWER}


def _app() -> FastAPI:
    app = FastAPI()

    @app.get("/v1/models")
    async def models() -> Fields:  # pyright: ignore[reportUnusedFunction]
        names = ("qwen3:8b", "llama3.2:3b", "my-agent")
        rows = [{"id": name, "object": "model", "created": 1, "owned_by": "library"} for name in names]
        return {"object": "list", "data": rows}

    @app.get("/")
    async def front() -> Response:  # pyright: ignore[reportUnusedFunction]
        return PlainTextResponse("Ollama is running")

    @app.get("/api/ps")
    async def loaded() -> Fields:  # pyright: ignore[reportUnusedFunction]
        return {"models": []}

    @app.post("/api/show")
    async def show(request: Request) -> Fields:  # pyright: ignore[reportUnusedFunction]
        await request.json()
        details = {"family": "qwen3", "parameter_size": "8.2B", "quantization_level": "Q4_K_M"}
        known = {"general.architecture": "qwen3", "qwen3.context_length": 40960}
        shown = {"parameters": "temperature 0.6\nnum_ctx 8192", "details": details, "model_info": known}
        return shown | {"capabilities": ["completion", "tools", "thinking"]}

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        body: Fields = await request.json()
        head = {"id": "c1", "created": 1, "model": body["model"]}
        message = says(body)
        ended = "tool_calls" if "tool_calls" in message else "stop"
        if body.get("stream"):
            return StreamingResponse(_frames(head, message, ended), media_type="text/event-stream")
        choice = {"index": 0, "message": message, "finish_reason": ended}
        usage = {"prompt_tokens": 90, "completion_tokens": 3, "total_tokens": 93}
        return JSONResponse({**head, "object": "chat.completion", "choices": [choice], "usage": usage})

    return app


async def _frames(head: Fields, message: Fields, ended: str) -> AsyncGenerator[bytes]:
    for delta, reason in ((message, None), ({}, ended)):
        choice: Fields = {"index": 0, "delta": delta, "finish_reason": reason}
        yield f"data: {json.dumps({**head, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n".encode()
    yield b"data: [DONE]\n\n"


@contextmanager
def stand_in() -> Generator[str]:
    """Its address, while it runs."""
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(_app(), log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        yield address_of(listener)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
