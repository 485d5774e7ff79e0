"""Model servers as their documentation shows them, and a thread to run one in beside a command."""

import asyncio
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.agent.sources.live.apiserver import ApiServer, Reply, Route, json_reply, text_reply


def listing(*models: str, owned_by: str) -> Reply:
    rows = [{"id": model, "object": "model", "created": 1_700_000_000, "owned_by": owned_by} for model in models]
    return json_reply({"object": "list", "data": rows})


def ollama(*models: str, owned_by: str = "library") -> dict[str, Route]:
    listed = listing(*models, owned_by=owned_by) if models else json_reply({"object": "list", "data": None})
    return {"/": text_reply("Ollama is running", content_type="text/plain"), "/v1/models": listed}


def lm_studio(*models: str, owned_by: str = "organization_owner") -> dict[str, Route]:
    rows = [{"id": model, "object": "model", "owned_by": owned_by} for model in models]
    front = json_reply({"error": "Unexpected endpoint or method. (GET /)"})
    return {"/": front, "/v1/models": json_reply({"object": "list", "data": rows})}


def llama_cpp(model: str) -> dict[str, Route]:
    meta = {"vocab_type": 2, "n_vocab": 128_256, "n_ctx_train": 131_072, "n_embd": 4096}
    row: dict[str, Any] = {"id": model, "object": "model", "created": 1, "owned_by": "llamacpp", "meta": meta}
    models = [{"name": model, "model": model, "type": "model"}]
    return {"/": text_reply("<html>"), "/v1/models": json_reply({"models": models, "object": "list", "data": [row]})}


def vllm(model: str) -> dict[str, Route]:
    row = {"id": model, "object": "model", "owned_by": "vllm", "root": model, "parent": None, "max_model_len": 4096}
    return {"/v1/models": json_reply({"object": "list", "data": [row]})}


def port_of(server: ApiServer) -> int:
    return int(server.base.rpartition(":")[2])


@contextmanager
def in_thread(routes: Mapping[str, Route]) -> Generator[int]:
    """Its port, while it runs."""
    started, ends = threading.Event(), asyncio.Event()
    ports: list[int] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with ApiServer(routes) as server:
            ports.append(port_of(server))
            started.set()
            await ends.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert started.wait(10)
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join()
        loop.close()
