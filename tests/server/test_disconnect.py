"""A client that leaves ends the work: the real server, a real socket, and a source or policy that would never end."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from server.chat.service import Service
from tests.server.live import QUESTION, Hanging, HangingPolicy, make_service, serving


def with_hanging_source() -> tuple[Service, Hanging]:
    source = Hanging()
    service = make_service()
    agent = replace(service.agent, sources={"web": source, "kg": source, "all": source})
    return replace(service, agent=agent), source


def with_hanging_policy() -> tuple[Service, HangingPolicy]:
    policy = HangingPolicy()
    service = make_service()
    return replace(service, agent=replace(service.agent, policy=policy)), policy


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("make", [with_hanging_source, with_hanging_policy])
def test_a_client_that_leaves_cancels_the_rollout(
    make: Callable[[], tuple[Service, Hanging | HangingPolicy]], *, stream: bool
) -> None:
    async def run() -> None:
        service, hanging = make()
        async with serving(service) as address, httpx2.AsyncClient(base_url=address, trust_env=False) as client:
            body = {"messages": QUESTION, "stream": stream}
            pending = asyncio.create_task(client.post("/v1/chat/completions", json=body, timeout=None))
            await hanging.requested.wait()
            assert not hanging.let_go.is_set()
            pending.cancel()
            await hanging.let_go.wait()

    asyncio.run(run())


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_stops_says_so_to_waiting_clients(*, stream: bool) -> None:
    async def run() -> httpx2.Response:
        service, hanging = with_hanging_source()
        async with serving(service) as address, httpx2.AsyncClient(base_url=address, trust_env=False) as client:
            body = {"messages": QUESTION, "stream": stream}
            pending = asyncio.create_task(client.post("/v1/chat/completions", json=body, timeout=None))
            await hanging.requested.wait()
            service.runs.end()
            response = await pending
            assert hanging.let_go.is_set()
            return response

    response = asyncio.run(run())
    last = response.text.strip().split("\n\n")[-1].removeprefix("data: ")
    assert json.loads(last)["error"]["code"] == "server_stops"
    assert response.status_code == (200 if stream else 503)


def test_silence_is_filled_with_comments_and_the_role_comes_at_once() -> None:
    async def run() -> list[str]:
        service, _ = with_hanging_source()
        service = replace(service, heartbeat_seconds=0.02)
        lines: list[str] = []
        body = {"messages": QUESTION, "stream": True}
        async with (
            serving(service) as address,
            httpx2.AsyncClient(base_url=address, trust_env=False) as client,
            client.stream("POST", "/v1/chat/completions", json=body) as response,
        ):
            async for line in response.aiter_lines():
                lines += [line] if line else []
                if sum(line.startswith(":") for line in lines) == 2:
                    break
        return lines

    lines = asyncio.run(run())
    assert json.loads(lines[0].removeprefix("data: "))["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert lines[-1] == lines[-2] == ": still here"


def test_an_answer_that_is_not_silent_has_no_comments() -> None:
    async def run() -> str:
        body = {"messages": QUESTION, "stream": True}
        async with serving(make_service()) as address, httpx2.AsyncClient(base_url=address, trust_env=False) as client:
            return (await client.post("/v1/chat/completions", json=body)).text

    blocks = asyncio.run(run()).strip().split("\n\n")
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    assert blocks[-1] == "data: [DONE]"


def test_a_bug_in_the_rollout_is_an_error_frame_and_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async def run(use: Callable[[httpx2.AsyncClient], Awaitable[Any]]) -> Any:
        service = make_service((ZeroDivisionError("a bug"),))
        async with serving(service) as address, httpx2.AsyncClient(base_url=address, trust_env=False) as client:
            return await use(client)

    def post(*, stream: bool) -> Any:
        body = {"messages": QUESTION, "stream": stream}
        return asyncio.run(run(lambda client: client.post("/v1/chat/completions", json=body)))

    last = json.loads(post(stream=True).text.strip().split("\n\n")[-1].removeprefix("data: "))
    whole = post(stream=False)
    assert last["error"]["code"] == whole.json()["error"]["code"] == "internal_error"
    assert "choices" not in last
    assert (whole.status_code, "x-request-id" in whole.headers) == (500, True)
    assert "ZeroDivisionError" in caplog.text
