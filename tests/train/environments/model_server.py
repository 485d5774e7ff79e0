"""A trainer's model behind a real server on 127.0.0.1: a chat by a script, and the shipped checkpoint with token ids.

POST /v1/chat/completions    what the script says to the messages; a stop text ends it and is left out, as servers do
POST /inference/v1/generate  the same script to a rendered chat, with token ids, as vLLM answers a renderer
POST /v1/completions         ids in, a stream of ids with log-probabilities out, as vLLM answers `return_token_ids`
"""

import asyncio
import json
import re
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from agent.policies.base import Sampling
from agent.policies.embedded import EmbeddedPolicy
from server.launch import address_of, bind

Script = Callable[[Sequence[dict[str, str]]], str | None]
"""From messages to what the model says; None: the engine is gone."""


TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Of a chat that is rendered."""
_CHAT = re.compile(r"<\|im_start\|>(\w+)\n(.*?)<\|im_end\|>\n", re.DOTALL)


@dataclass
class ModelServer:
    """What it got, and what it answered."""

    script: Script
    policy: EmbeddedPolicy | None = None
    broken: str = ""
    """A prompt of ids that says this finds the engine gone."""
    url: str = ""
    chats: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sampled: list[tuple[list[int], list[int]]] = field(default_factory=list[tuple[list[int], list[int]]])
    """Prompt and response of each turn of ids."""

    def app(self) -> FastAPI:
        app = FastAPI()
        app.post("/v1/chat/completions")(self.chat)
        app.post("/inference/v1/generate")(self.generate)
        app.post("/v1/completions")(self.complete)
        return app

    async def chat(self, request: Request) -> Response:
        body: dict[str, Any] = await request.json()
        self.chats.append(body)
        said = self.script(body["messages"])
        if said is None:
            return _gone()
        said = said[: min((at for mark in body["stop"] if (at := said.find(mark)) >= 0), default=len(said))]
        return StreamingResponse(_frames(body["model"], said), media_type="text/event-stream")

    async def generate(self, request: Request) -> Response:
        body: dict[str, Any] = await request.json()
        assert self.policy is not None
        codec = self.policy.checkpoint.codec
        said = self.script(
            [{"role": role, "content": text} for role, text in _CHAT.findall(codec.decode(body["token_ids"]))]
        )
        if said is None:
            return _gone()
        ends = [at + len(mark) for mark in body["sampling_params"]["stop"] if (at := said.find(mark)) >= 0]
        response = list(codec.encode(said[: min(ends, default=len(said))]))
        self.sampled.append((body["token_ids"], response))
        logprobs = [{"token": f"token_id:{number}", "logprob": logprob_of(number)} for number in response]
        choice = {"index": 0, "token_ids": response, "logprobs": {"content": logprobs}, "finish_reason": "stop"}
        return JSONResponse({"request_id": f"r{len(self.sampled)}", "choices": [choice]})

    async def complete(self, request: Request) -> Response:
        body: dict[str, Any] = await request.json()
        assert self.policy is not None
        assert body["return_token_ids"]
        if self.broken and self.broken in self.policy.checkpoint.codec.decode(body["prompt"]):
            return _gone()
        return StreamingResponse(self._ids(body), media_type="text/event-stream")

    async def _ids(self, body: dict[str, Any]) -> AsyncGenerator[bytes]:
        assert self.policy is not None
        sampling = Sampling(temperature=body["temperature"], seed=body.get("seed", 0))
        ends = frozenset(body["stop_token_ids"])
        response: list[int] = []
        self.sampled.append((body["prompt"], response))
        stream = self.policy.sample(body["prompt"], sampling, ends=ends, max_tokens=body["max_tokens"])
        async with aclosing(stream) as events:
            async for event in events:
                response += [number for number, _ in event]
                logprobs = {"token_logprobs": [logprob for _, logprob in event]}
                yield _event({"token_ids": [number for number, _ in event], "logprobs": logprobs})
        yield _event({"token_ids": [], "logprobs": {"token_logprobs": []}, "finish_reason": "stop"})
        yield b"data: [DONE]\n\n"


def logprob_of(number: int) -> float:
    """Made up, and that of the id alone."""
    return -(1 + number % 8) / 16


def _gone() -> JSONResponse:
    return JSONResponse({"error": {"message": "the engine is gone"}}, 400)


def _event(choice: dict[str, Any], **more: Any) -> bytes:
    fields = {"choices": [{"index": 0, "finish_reason": None} | choice]} | more
    return f"data: {json.dumps(fields)}\n\n".encode()


async def _frames(model: str, said: str) -> AsyncGenerator[bytes]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model}
    yield _event({"delta": {"role": "assistant", "content": said}}, **head)
    yield _event({"delta": {}, "finish_reason": "stop"}, **head)
    yield b"data: [DONE]\n\n"


@contextmanager
def model_server(script: Script, *, policy: EmbeddedPolicy | None = None, broken: str = "") -> Generator[ModelServer]:
    """Serve in a thread while inside."""
    served = ModelServer(script, policy, broken)
    listener = bind("127.0.0.1", 0)
    served.url = f"{address_of(listener)}/v1"
    config = uvicorn.Config(served.app(), log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
    web = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(web.serve(sockets=[listener])))
    thread.start()
    try:
        yield served
    finally:
        web.should_exit = True
        thread.join()
        listener.close()
