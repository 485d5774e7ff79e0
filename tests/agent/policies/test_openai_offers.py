"""What a server offers is seen from what it does, and Ollama's context by its own API."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import pytest

from agent.errors import PolicyError
from agent.outbound.llm import LlmClient
from agent.outbound.retries import Retries
from agent.policies.openai_abilities import OLLAMA_CONTEXT, look
from agent.policies.openai_offers import Offers, offers_of
from tests.agent.sources.live.apiserver import ApiServer, Route, json_reply, text_reply
from tests.model_servers import llama_cpp, ollama

CHAT = "/v1/chat/completions"
T = TypeVar("T")


def at(routes: Mapping[str, Route], ask: Callable[[LlmClient], Awaitable[T]]) -> T:
    async def run() -> T:
        async with ApiServer(routes) as server:
            endpoint = LlmClient(base_url=f"{server.base}/v1", model="qwen3:8b", retries=Retries(0))
            try:
                return await ask(endpoint)
            finally:
                await endpoint.aclose()

    return asyncio.run(run())


def completion(message: Mapping[str, Any], **choice: Any) -> Any:
    row = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop", **choice}
    return json_reply({"id": "c", "object": "chat.completion", "choices": [row]})


CALLED = {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]}


def test_a_server_that_does_all_is_distinguished_from_one_that_ignores_it():
    replies = iter(
        [
            completion({"content": '{"word": "cairn-7"}'}),
            completion({"content": None, **CALLED}),
            completion({"content": "Hello", "reasoning_content": "A greeting."}, logprobs={"content": [{}]}),
        ]
    )
    assert at({CHAT: lambda _: next(replies)}, offers_of) == Offers(
        tools=True, schema=True, logprobs=True, reasoning=True
    )
    assert at({CHAT: completion({"content": "Hello."})}, offers_of) == Offers()


@pytest.mark.parametrize(
    "reply",
    [
        json_reply({"error": {"message": "tools are not supported"}}, 400),
        json_reply({"choices": "odd"}),
        text_reply("<html>"),
        completion({"content": "[" * 100_000}),
    ],
)
def test_a_refusal_and_an_odd_reply_offer_nothing(reply: Any):
    assert at({CHAT: reply}, offers_of) == Offers()


def test_a_server_that_fails_is_said():
    with pytest.raises(PolicyError):
        at({CHAT: json_reply({"error": "out of memory"}, 500)}, offers_of)


SHOWN = {"capabilities": ["completion", "tools"], "model_info": {"qwen3.context_length": 40_960}}
LOADED = {"models": [{"name": "other"}, {"name": "qwen3:8b", "model": "qwen3:8b", "context_length": 16_384}]}


@pytest.mark.parametrize(
    ("routes", "tokens"),
    [
        ({"/api/ps": json_reply(LOADED)}, 16_384),
        ({"/api/show": json_reply(SHOWN | {"parameters": "temperature 0.6\nnum_ctx     8192"})}, 8192),
        ({"/api/show": json_reply(SHOWN)}, OLLAMA_CONTEXT),
        ({"/api/ps": json_reply({"models": [7]}), "/api/show": text_reply("<html>")}, OLLAMA_CONTEXT),
        ({}, OLLAMA_CONTEXT),
    ],
)
def test_the_context_at_ollama_is_that_with_which_it_loads_the_model(routes: dict[str, Route], tokens: int):
    assert at(ollama("qwen3:8b") | routes, look).context_tokens == tokens


@pytest.mark.parametrize("others", [(), ("gemma3:4b",)])
@pytest.mark.parametrize("loaded", [True, False])
def test_a_model_without_a_tag_is_ollamas_latest_and_is_loaded_where_nothing_else_says_its_context(
    others: tuple[str, ...], loaded: bool
):
    there = [{"name": "qwen3:latest", "model": "qwen3:latest", "context_length": 16_384}]
    running = iter([json_reply({"models": there if loaded else []}), json_reply({"models": there})])
    sent: list[Any] = []

    def load(request: Any) -> Any:
        sent.append(json.loads(request.body))
        return json_reply({"done": True})

    routes: dict[str, Route] = {"/api/ps": lambda _: next(running), "/api/generate": load}

    async def work() -> int | None:
        async with ApiServer(ollama("qwen3:latest", *others) | routes) as server:
            endpoint = LlmClient(base_url=f"{server.base}/v1", model="qwen3", retries=Retries(0))
            try:
                return (await look(endpoint)).context_tokens
            finally:
                await endpoint.aclose()

    assert asyncio.run(work()) == 16_384
    assert sent == ([] if loaded else [{"model": "qwen3", "stream": False}])


def test_the_context_at_llama_cpp_is_that_of_a_slot_and_not_that_of_the_training():
    props = {"/props": json_reply({"default_generation_settings": {"n_ctx": 2048}, "total_slots": 4})}
    assert at(llama_cpp("qwen3:8b") | props, look).context_tokens == 2048
    assert at(llama_cpp("qwen3:8b"), look).context_tokens == 131_072


def test_a_connection_that_the_server_closed_meanwhile_loses_no_turn():
    """llama.cpp's server closes a connection after some seconds or requests: the next one on it gets no answer."""
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}
    said = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    requests = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length"))
        await reader.readexactly(int(length.split(b":")[1]))
        requests += 1
        if requests > 1:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + said)
            await writer.drain()
        writer.close()

    async def scene() -> list[dict[str, Any]]:
        async with asyncio.timeout(20), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            endpoint = LlmClient(base_url=f"http://127.0.0.1:{port}/v1", model="m", retries=Retries(1))
            async with endpoint.chat([{"role": "user", "content": "Hi"}], max_tokens=5) as events:
                found = [event async for event in events]
            await endpoint.aclose()
            return found

    (event,) = asyncio.run(scene())
    assert event == chunk
    assert requests == 2
