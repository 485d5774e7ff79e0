"""Servers on 127.0.0.1 that treat a chat as the real ones do, each by its own documentation and error messages.

Their model is a function of the rendered chat, so that it matters whether the assistant's last message is left open.
"""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from tests.agent.policies.engine_case import say

MODEL: Final = "small"
CHARS: Final = 4
"""In one token of these models."""
TOKEN_SECONDS: Final = 0.001
"""A model takes its time, too: what comes all at once cannot be interrupted."""
_HEAD: Final = {"id": "c1", "created": 1, "model": MODEL}


class Refused(Exception):
    """The server's own words; answered with status 400."""


@dataclass(frozen=True)
class Kind:
    """How one server treats a chat."""

    owner: str
    """What its list of models says in `owned_by`."""
    is_open: Callable[[Mapping[str, Any]], bool]
    """Whether the assistant's last message is left open. It may refuse the request."""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the list of models says beside."""


def _vllm(body: Mapping[str, Any]) -> bool:
    begins, goes_on = body.get("add_generation_prompt", True), body.get("continue_final_message", False)
    if begins and goes_on:
        raise Refused("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
    return goes_on


def _llamacpp(body: Mapping[str, Any]) -> bool:
    _vllm(body)
    return True


def _old_llamacpp(_: Mapping[str, Any]) -> bool:
    return True


def _mistral(body: Mapping[str, Any]) -> bool:
    last = body["messages"][-1]
    if last["role"] == "assistant" and not last.get("prefix"):
        raise Refused("Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant")
    return True


def _openai(body: Mapping[str, Any]) -> bool:
    known = {"model", "messages", "stream", "stream_options", "max_tokens", "temperature", "top_p", "seed", "stop"}
    if unknown := sorted(set(body) - known):
        raise Refused(f"Unrecognized request argument supplied: {unknown[0]}")
    return False


KINDS: Final = {
    "vllm": Kind("vllm", _vllm, {"root": "org/small", "max_model_len": 4096}),
    "vllm without a fitting template": Kind("vllm", lambda body: _no_template(body)),
    "llama.cpp": Kind("llamacpp", _llamacpp, {"meta": {"n_ctx_train": 4096}}),
    "older llama.cpp": Kind("llamacpp", _old_llamacpp),
    "ollama": Kind("library", lambda _: True),
    "ollama with a template that closes": Kind("library", lambda _: False),
    "mistral": Kind("mistralai", _mistral),
    "openai": Kind("openai", _openai),
}


def _no_template(body: Mapping[str, Any]) -> bool:
    if body.get("continue_final_message"):
        raise Refused("continue_final_message is set but the final message does not appear in the chat after applying")
    return False


def chatml(body: Mapping[str, Any], *, leave_open: bool) -> str:
    """The chat as a model reads it (the template of Qwen)."""
    messages: list[dict[str, str]] = body["messages"]
    text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
    if messages[-1]["role"] == "assistant" and leave_open:
        return text.removesuffix("<|im_end|>\n")
    return f"{text}<|im_start|>assistant\n"


def answer(chat: str) -> str:
    """The model: it repeats words on request, and else plans, searches and answers."""
    words = "alpha beta gamma delta epsilon"
    if words in chat:
        return words.removeprefix(chat.rpartition("<|im_start|>assistant\n")[2])
    last = chat.rpartition("<|im_start|>user\n")[2]
    if "Answer now" in last and last.endswith("<|im_start|>assistant\n"):
        return "<answer>Lurnia</answer>"
    begun = chat.rpartition("<|im_start|>assistant\n")[2]
    if begun and "<information>" not in begun and "<answer>" not in begun and "</search>" not in begun:
        whole = say(chat.removesuffix(begun))
        return whole.removeprefix(begun) if whole.startswith(begun) else say(chat)
    return say(chat)


@dataclass
class Spoken:
    """A server of one kind while it runs."""

    kind: Kind
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    knows_stops: bool = True
    """Whether it ends at a stop text (and drops it, so that no one knows which one it was)."""
    dies: bool = False
    """The next stream breaks off after its first piece, and nothing is answered afterwards."""
    dead: bool = False

    def app(self) -> FastAPI:
        app = FastAPI()
        app.get("/v1/models")(self.models)
        app.post("/v1/chat/completions")(self.chat)
        app.post("/v1/completions")(self.completions)
        return app

    async def models(self) -> Response:
        return JSONResponse(
            {
                "object": "list",
                "data": [{"id": MODEL, "object": "model", "owned_by": self.kind.owner, **self.kind.more}],
            }
        )

    async def completions(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        if not isinstance(body["prompt"], str):
            return _refusal("'prompt' must be a string")
        return JSONResponse({**_HEAD, "object": "text_completion", "choices": [{"index": 0, "text": "no ids"}]})

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        if self.dead:
            return JSONResponse({"error": {"message": "the engine is gone"}}, 500, headers={"retry-after-ms": "1"})
        try:
            said, finish, tokens = self._say(body)
        except Refused as error:
            return _refusal(str(error))
        if body.get("stream"):
            return StreamingResponse(self._stream(said, finish, tokens), media_type="text/event-stream")
        message = {"role": "assistant", "content": said}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return JSONResponse({**_HEAD, "object": "chat.completion", "choices": [choice]})

    def _say(self, body: Mapping[str, Any]) -> tuple[str, str, int]:
        """What is said, why it ended and how many tokens it took; a stop text is dropped, as servers do."""
        text = answer(chatml(body, leave_open=self.kind.is_open(body)))
        ends = [at for mark in body.get("stop") or () if (at := text.find(mark)) >= 0 and self.knows_stops]
        stopped = text[: min(ends)] if ends else text
        kept = stopped[: CHARS * body["max_tokens"]]
        return kept, "stop" if kept == stopped else "length", -(-len(kept) // CHARS)

    async def _stream(self, said: str, finish: str, tokens: int) -> AsyncGenerator[str]:
        for start in range(0, len(said), CHARS):
            yield _frame({"content": said[start : start + CHARS]})
            await asyncio.sleep(TOKEN_SECONDS)
            if self.dies:
                self.dead = True
                raise ConnectionResetError("as the test wants")
        yield _frame({}, finish=finish)
        usage = {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}
        yield f"data: {json.dumps({**_HEAD, 'object': 'chat.completion.chunk', 'choices': [], 'usage': usage})}\n\n"
        yield "data: [DONE]\n\n"


def _refusal(why: str) -> Response:
    return JSONResponse({"error": {"message": why, "type": "invalid_request_error", "param": None, "code": None}}, 400)


def _frame(delta: Mapping[str, str], *, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({**_HEAD, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"


@contextmanager
def spoken(kind: str) -> Generator[Spoken]:
    """Run a server in a thread of its own, whatever event loops its clients have."""
    server = Spoken(KINDS[kind])
    config = uvicorn.Config(
        server.app(), port=0, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1
    )
    web = _Started(config)
    thread = threading.Thread(target=web.run, daemon=True)
    thread.start()
    assert web.ready.wait(30)
    port = web.servers[0].sockets[0].getsockname()[1]
    server.url = f"http://127.0.0.1:{port}/v1"
    try:
        yield server
    finally:
        web.should_exit = True
        thread.join()


class _Started(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()
