"""Finding model servers: each known one by what it says, and nothing that merely listens on its port."""

import asyncio
import shlex
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.policies.local_servers import MAX_MODELS, MAX_NAME_CHARS, PORTS, LocalServer, find_local_servers
from tests.agent.sources.live.apiserver import ApiServer, Reply, Route, gzip_bomb, json_reply, text_reply
from tests.model_servers import listing, llama_cpp, lm_studio, ollama, port_of, vllm
from tests.server.live import make_service, serving

Routes = dict[str, Route]
Found = tuple[LocalServer, ...]
PORTS_BY_NAME = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}


def find(*servers: tuple[Routes, str], seconds: float = 5.0) -> tuple[Found, list[ApiServer]]:
    """What is found beside these servers, each on a port on which another one is expected."""

    async def run() -> tuple[Found, list[ApiServer]]:
        async with asyncio.timeout(20), AsyncExitStack() as stack:
            started = [await stack.enter_async_context(ApiServer(routes)) for routes, _ in servers]
            ports = {port_of(server): name for server, (_, name) in zip(started, servers, strict=True)}
            return await find_local_servers(ports=ports, seconds=seconds), started

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("routes", "expected", "name", "models"),
    [
        (ollama("qwen3:8b", "llama3.2:3b"), "Ollama", "Ollama", ("qwen3:8b", "llama3.2:3b")),
        (ollama("ada/own:latest", owned_by="ada"), "Ollama", "Ollama", ("ada/own:latest",)),
        (ollama(), "Ollama", "Ollama", ()),
        (ollama("qwen3:8b"), "vLLM", "Ollama", ("qwen3:8b",)),
        (lm_studio("qwen/qwen3-8b"), "LM Studio", "LM Studio", ("qwen/qwen3-8b",)),
        (lm_studio("qwen/qwen3-8b"), "llama.cpp", "LM Studio", ("qwen/qwen3-8b",)),
        (lm_studio("phi-3", owned_by="TheBloke"), "LM Studio", "LM Studio", ("phi-3",)),
        (lm_studio(), "LM Studio", "LM Studio", ()),
        (llama_cpp("../models/Qwen3-8B-Q4_K_M.gguf"), "llama.cpp", "llama.cpp", ("../models/Qwen3-8B-Q4_K_M.gguf",)),
        (vllm("Qwen/Qwen3-8B"), "vLLM", "vLLM", ("Qwen/Qwen3-8B",)),
        (vllm("Qwen/Qwen3-8B"), "LM Studio", "vLLM", ("Qwen/Qwen3-8B",)),
    ],
)
def test_a_server_is_known_by_what_it_says(routes: Routes, expected: str, name: str, models: tuple[str, ...]) -> None:
    found, (server,) = find((routes, expected))
    assert found == (LocalServer(name, f"{server.base}/v1", models),)


def test_all_four_are_found_together_in_the_order_of_their_ports() -> None:
    servers = [ollama("qwen3:8b"), lm_studio("phi-4"), llama_cpp("a.gguf"), vllm("org/model")]
    found, _ = find(*zip(servers, PORTS_BY_NAME, strict=True))
    assert [server.name for server in found] == list(PORTS_BY_NAME)


def test_a_cairn_is_not_offered_to_itself() -> None:
    async def run() -> Found:
        async with serving(make_service()) as address:
            return await find_local_servers(ports={int(address.rpartition(":")[2]): "LM Studio"}, seconds=5.0)

    assert asyncio.run(run()) == ()


@pytest.mark.parametrize(
    "routes",
    [
        {"/v1/models": listing("gpt-x", owned_by="openai"), "/": text_reply("Welcome")},
        {"/v1/models": json_reply({"error": "no key"}, 401), "/": text_reply("Ollama is running")},
        {"/": text_reply("Ollama is running")},
    ],
)
def test_what_is_unknown_or_wants_a_key_is_left_out(routes: Routes) -> None:
    assert find((routes, "vLLM"))[0] == ()


def test_nothing_is_found_where_nothing_runs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert asyncio.run(find_local_servers(ports={port: "Ollama"}, seconds=5.0)) == ()


def test_models_that_embed_and_names_that_cannot_be_typed_are_left_out() -> None:
    names = ["nomic-embed-text", "a\x1b[31mb", "two\nlines", "‮gnp", " lead", "--help", "", "x" * (MAX_NAME_CHARS + 1)]
    found, _ = find((ollama("qwen3:8b", *names, "qwen3:8b", "é" * MAX_NAME_CHARS), "Ollama"))
    assert found[0].models == ("qwen3:8b", "é" * MAX_NAME_CHARS)


def test_rows_that_are_no_models_are_left_out() -> None:
    rows: list[Any] = [
        None,
        3,
        "qwen",
        {},
        {"id": 7},
        {"id": ["x"], "owned_by": {}},
        {"id": "qwen3:8b", "owned_by": "library"},
    ]
    found, _ = find(({"/v1/models": json_reply({"object": "list", "data": rows})}, "Ollama"))
    assert found[0].models == ("qwen3:8b",)


def test_a_long_list_is_cut() -> None:
    found, _ = find((vllm("first") | {"/v1/models": listing(*map(str, range(500)), owned_by="vllm")}, "vLLM"))
    assert found[0].models == tuple(map(str, range(MAX_MODELS)))


@pytest.mark.parametrize(
    "reply",
    [
        text_reply("<html>Tomcat</html>"),
        text_reply('{"object": "list", "data": [', content_type="application/json"),
        json_reply([{"id": "x", "owned_by": "vllm"}]),
        json_reply({"object": "list", "data": {"id": "x"}}),
        json_reply({"data": [{"id": "x", "owned_by": "vllm"}]}),
        json_reply(None),
        Reply(b"\xff\xfe\x00"),
        Reply(b"[" * 500_000),
        Reply(b'{"object": "list", "data": [' + b"9" * 100_000 + b"]}"),
        Reply(b'{"object": "list", "data": []}', headers={"content-encoding": "gzip"}),
        listing("x" * 2_000_000, owned_by="vllm"),
        gzip_bomb(),
        Reply(b"{}", how="reset"),
        Reply(how="hang"),
    ],
    ids=lambda reply: f"{reply.body[:20]!r}-{reply.how}",
)
def test_an_odd_reply_is_left_out_and_costs_the_others_nothing(reply: Reply) -> None:
    started = time.monotonic()
    found, _ = find(({"/v1/models": reply}, "vLLM"), (ollama("qwen3:8b"), "Ollama"), seconds=1.0)
    assert [server.name for server in found] == ["Ollama"]
    assert time.monotonic() - started < 10


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0)


async def garble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\x00\xff\r\n\r\n")
    await writer.drain()


async def endless_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x-more: 1\r\n")
        await writer.drain()
        await asyncio.sleep(0)


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """It closes before it has said anything."""


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.mark.parametrize("talk", [drip, garble, endless_head, hang_up])
def test_what_never_ends_or_is_no_http_is_left_after_the_time_is_over(talk: Talk) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except ConnectionError:
            pass  # the client left
        finally:
            writer.close()

    async def run() -> Found:
        async with asyncio.timeout(10), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            return await find_local_servers(ports={server.sockets[0].getsockname()[1]: "LM Studio"}, seconds=0.3)

    assert asyncio.run(run()) == ()


def test_silent_servers_are_waited_for_at_the_same_time_and_no_longer_than_said() -> None:
    silent: Routes = {"*": Reply(how="hang")}
    started = time.monotonic()
    assert find(*[(silent, name) for name in PORTS_BY_NAME], seconds=0.5)[0] == ()
    assert 0.5 <= time.monotonic() - started < 1.5


def test_a_redirect_is_not_followed() -> None:
    async def run() -> tuple[Found, int]:
        async with asyncio.timeout(20), ApiServer(ollama("qwen3:8b")) as target:
            elsewhere = Reply(b"", 302, {"location": f"{target.base}/v1/models"})
            async with ApiServer({"*": elsewhere}) as server:
                found = await find_local_servers(ports={port_of(server): "LM Studio"}, seconds=5.0)
                return found, len(target.requests)

    assert asyncio.run(run()) == ((), 0)


def test_no_key_is_sent_and_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[Found, ApiServer, ApiServer]:
        async with asyncio.timeout(20), ApiServer(ollama("qwen3:8b")) as server, ApiServer() as proxy:
            for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.base)
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            monkeypatch.setenv("CAIRN_API_KEY", "s3cret")
            monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
            return await find_local_servers(ports={port_of(server): "Ollama"}, seconds=5.0), server, proxy

    found, server, proxy = asyncio.run(run())
    assert [one.name for one in found] == ["Ollama"]
    assert proxy.requests == []
    assert [(one.method, one.target, one.body) for one in server.requests] == [("GET", "/v1/models", b"")]
    assert not {"authorization", "cookie", "x-api-key"} & set(server.requests[0].headers)
    assert "s3cret" not in str(server.requests)


@given(st.text(min_size=1, max_size=MAX_NAME_CHARS).filter(lambda name: "\0" not in name))
def test_a_command_holds_the_name_of_a_model_as_one_word(model: str) -> None:
    command = LocalServer("Ollama", "http://127.0.0.1:11434/v1", (model,)).command(model)
    expected = ["cairn", "serve", "--base-url", "http://127.0.0.1:11434/v1", "--model", model]
    assert shlex.split(command) == expected


def test_tests_look_at_no_port_of_the_machine() -> None:
    from agent.policies import local_servers

    assert dict(PORTS) == {port: name for name, port in PORTS_BY_NAME.items()}
    assert local_servers.PORTS == {}
