"""A server that must stop: it takes nothing new, says so to probes, and gives runs on their way their time."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from server.chat.service import Service
from server.launch import Server
from server.shutdown import Grace
from tests.server.live import ANSWER, QUESTION, SEARCH, Hanging, HangingPolicy, PausedSource, make_service, serving_as

CHAT = "/v1/chat/completions"
Use = Callable[[httpx2.AsyncClient, Server], Awaitable[Any]]


def with_sources(source: Any) -> Service:
    service = make_service((SEARCH, ANSWER))
    return replace(service, agent=replace(service.agent, sources={"web": source, "kg": source, "all": source}))


def served(service: Service, grace: Grace, use: Use) -> Any:
    async def run() -> Any:
        async with (
            serving_as(service, grace=grace) as (address, server),
            httpx2.AsyncClient(base_url=address, trust_env=False, timeout=60) as client,
        ):
            return await use(client, server)

    return asyncio.run(run())


async def requested(client: httpx2.AsyncClient, service: Service, *, stream: bool) -> asyncio.Task[httpx2.Response]:
    """An answer on its way, whose run has begun."""
    task = asyncio.create_task(client.post(CHAT, json={"messages": QUESTION, "stream": stream}))
    while not service.watch.active:  # noqa: ASYNC110 - a state of the server that nothing reports
        await asyncio.sleep(0)
    return task


async def closing(service: Service) -> None:
    while not service.admission.closed:  # noqa: ASYNC110 - the server looks for signals now and then
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("stream", [True, False])
def test_runs_on_their_way_end_by_themselves_while_nothing_new_is_taken(*, stream: bool) -> None:
    paused = PausedSource()
    service = with_sources(paused)

    async def use(client: httpx2.AsyncClient, server: Server) -> tuple[httpx2.Response, httpx2.Response, Any]:
        answer = await requested(client, service, stream=stream)
        server.should_exit = True
        await closing(service)
        refused = await client.post(CHAT, json={"messages": QUESTION})
        ready = await client.get("/readyz")
        alive = await client.get("/healthz")
        assert alive.status_code == 200
        paused.open()
        return await answer, refused, ready

    answer, refused, ready = served(service, Grace(seconds=30), use)
    assert answer.status_code == 200
    assert "Trieste" in answer.text
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "server_stops")
    assert refused.headers["retry-after"] == "1"
    assert (ready.status_code, ready.json()["status"]) == (503, "stopping")


@pytest.mark.parametrize("stream", [True, False])
def test_a_run_that_takes_longer_answers_with_what_it_found(*, stream: bool) -> None:
    service = with_sources(Hanging())

    async def use(client: httpx2.AsyncClient, server: Server) -> httpx2.Response:
        answer = await requested(client, service, stream=stream)
        server.should_exit = True
        return await answer

    answer = served(service, Grace(seconds=0, answer_seconds=30), use)
    assert answer.status_code == 200
    assert "Trieste" in answer.text
    assert "server_stops" not in answer.text


@pytest.mark.parametrize("stream", [True, False])
def test_a_run_that_cannot_answer_in_time_ends_with_the_error(*, stream: bool) -> None:
    policy = HangingPolicy()
    service = make_service()
    service = replace(service, agent=replace(service.agent, policy=policy))

    async def use(client: httpx2.AsyncClient, server: Server) -> httpx2.Response:
        answer = await requested(client, service, stream=stream)
        await policy.requested.wait()
        server.should_exit = True
        return await answer

    answer = served(service, Grace(seconds=0, answer_seconds=0), use)
    assert policy.let_go.is_set()
    assert "server_stops" in answer.text
    assert answer.status_code == (200 if stream else 503)


def test_a_second_signal_stops_the_server_at_once() -> None:
    policy = HangingPolicy()
    service = make_service()
    service = replace(service, agent=replace(service.agent, policy=policy))

    async def use(client: httpx2.AsyncClient, server: Server) -> httpx2.Response:
        answer = await requested(client, service, stream=False)
        await policy.requested.wait()
        server.should_exit = True
        server.handle_exit(signal.SIGTERM, None)
        return await answer

    assert served(service, Grace(seconds=600), use).json()["error"]["code"] == "server_stops"


def test_a_server_with_nothing_to_do_stops_at_once() -> None:
    async def use(client: httpx2.AsyncClient, server: Server) -> None:
        assert (await client.get("/healthz")).status_code == 200

    served(make_service(), Grace(seconds=600, answer_seconds=600), use)


HANGS = """
import asyncio
from dataclasses import replace
from server.shutdown import Grace
from server.launch import address_of, bind, make_server
from tests.server.live import HangingPolicy, make_service

service = make_service(heartbeat_seconds=600)
service = replace(service, agent=replace(service.agent, policy=HangingPolicy()))
listener = bind("127.0.0.1", 0)
server = make_server(service, grace=Grace(seconds=600))
server.greet = lambda: print(address_of(listener), flush=True)
asyncio.run(server.serve(sockets=[listener]))
"""


def test_a_second_signal_is_heard_while_the_server_sleeps() -> None:
    with subprocess.Popen([sys.executable, "-c", HANGS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            with httpx2.Client(base_url=process.stdout.readline().strip(), trust_env=False, timeout=60) as client:
                body = {"messages": QUESTION, "stream": True}
                with client.stream("POST", CHAT, json=body) as answer:
                    lines = answer.iter_lines()
                    next(lines)
                    process.terminate()
                    while client.get("/readyz").json()["status"] != "stopping":
                        pass
                    process.terminate()
                    assert "server_stops" in "".join(lines)
            assert process.wait(timeout=20) == -signal.SIGTERM
        finally:
            process.kill()
