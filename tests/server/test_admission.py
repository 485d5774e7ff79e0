"""As many runs as there are slots, a queue that is as long as it may be, and 429 at once for those above it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.auth.admission import Admission, AdmissionBounds, Slot
from server.chat.service import Service
from server.http.errors import ApiError
from tests.server.live import QUESTION, PausedSource, make_service, serving
from tests.virtual_clock import run as run_virtual

CHAT = "/v1/chat/completions"


def with_paused_source(bounds: AdmissionBounds) -> tuple[Service, PausedSource]:
    """A service whose searches wait until the test lets them go."""
    paused = PausedSource()
    service = make_service(admission=Admission(bounds))
    return replace(service, agent=replace(service.agent, sources={"web": paused, "kg": paused, "all": paused})), paused


@asynccontextmanager
async def requested(service: Service, count: int, **body: Any) -> AsyncGenerator[tuple[httpx2.AsyncClient, list[Any]]]:
    """A client, and `count` answers that are on their way."""
    async with serving(service) as address, httpx2.AsyncClient(base_url=address, trust_env=False, timeout=60) as client:
        answers = [asyncio.create_task(client.post(CHAT, json={"messages": QUESTION} | body)) for _ in range(count)]
        yield client, answers


async def until(what: Any) -> None:
    while not what():  # noqa: ASYNC110 - a state of the server that nothing reports
        await asyncio.sleep(0)


@pytest.mark.parametrize("stream", [True, False])
def test_too_many_are_refused_at_once_while_those_that_came_before_are_answered(*, stream: bool) -> None:
    async def run() -> tuple[httpx2.Response, float, list[httpx2.Response]]:
        service, paused = with_paused_source(AdmissionBounds(runs=2, queue=1))
        async with requested(service, 3, stream=stream) as (client, answers):
            await until(lambda: service.admission.running == 2 and service.admission.waiting == 1)
            await client.get("/healthz")  # the connection is open before the clock starts
            began = perf_counter()
            refused = await client.post(CHAT, json={"messages": QUESTION})
            took = perf_counter() - began
            paused.open()
            return refused, took, await asyncio.gather(*answers)

    refused, took, answers = asyncio.run(run())
    assert refused.status_code == 429
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "server_busy")
    assert int(refused.headers["retry-after"]) >= 1
    assert "2 runs are active and 1 are waiting" in error["message"]
    assert took < 0.5, "far above the 50 ms of a machine of its own"
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert all("Trieste" in answer.text for answer in answers)


def test_a_stream_holds_its_slot_until_its_end() -> None:
    async def run() -> None:
        service, paused = with_paused_source(AdmissionBounds(runs=1, queue=0))
        body = {"messages": QUESTION, "stream": True}
        async with requested(service, 0) as (client, _), client.stream("POST", CHAT, json=body) as response:
            lines = response.aiter_lines()
            await anext(lines)
            assert service.admission.running == 1
            assert (await client.post(CHAT, json=body)).status_code == 429
            paused.open()
            assert [line async for line in lines][-2] == "data: [DONE]"
            await until(lambda: service.admission.running == 0)

    asyncio.run(run())


@pytest.mark.parametrize("when", ["runs", "waits"])
def test_a_client_that_leaves_gives_its_place_to_the_next(when: str) -> None:
    async def run() -> None:
        service, paused = with_paused_source(AdmissionBounds(runs=1, queue=2))
        async with requested(service, 2) as (client, answers):
            await until(lambda: service.admission.waiting == 1)
            leaver = answers[0 if when == "runs" else 1]
            leaver.cancel()
            await until(lambda: service.admission.waiting == 0)
            paused.open()
            left = [answer for answer in answers if answer is not leaver]
            assert [(await answer).status_code for answer in left] == [200]
            assert (await client.post(CHAT, json={"messages": QUESTION})).status_code == 200
            await until(lambda: service.admission.running == 0)

    asyncio.run(run())


def test_what_starts_no_run_needs_no_slot() -> None:
    async def run() -> list[int]:
        service, _ = with_paused_source(AdmissionBounds(runs=0, queue=0))
        async with requested(service, 0) as (client, _):
            answers = [await client.get(path) for path in ("/healthz", "/v1/models", "/metrics", "/")]
            answers.append(await client.post("/retrieve", json={"queries": []}))
            answers.append(await client.post(CHAT, json={"messages": QUESTION}))
            return [answer.status_code for answer in answers]

    assert asyncio.run(run()) == [200, 200, 200, 200, 200, 429]


def test_a_request_that_is_refused_gives_its_slot_back() -> None:
    async def run() -> None:
        service, _ = with_paused_source(AdmissionBounds(runs=1, queue=0))
        async with requested(service, 0) as (client, _):
            bodies: list[dict[str, Any]] = [{"messages": []}, {"messages": QUESTION, "model": "none"}, {}]
            for body in bodies:
                assert (await client.post(CHAT, json=body)).status_code in (400, 404)
        assert service.admission.running == 0

    asyncio.run(run())


def test_a_body_that_does_not_come_holds_no_slot() -> None:
    async def run() -> None:
        service, _ = with_paused_source(AdmissionBounds(runs=1, queue=0))
        async with serving(service) as address:
            host, port = address.removeprefix("http://").split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"POST {CHAT} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 99\r\n\r\n{{".encode())
            await writer.drain()
            async with httpx2.AsyncClient(base_url=address, trust_env=False) as client:
                await client.get("/healthz")
            assert service.admission.running == 0
            writer.close()

    asyncio.run(run())


def test_a_wait_that_takes_too_long_ends_with_429_and_leaves_the_queue() -> None:
    async def run() -> None:
        admission = Admission(AdmissionBounds(runs=1, queue=5, wait_seconds=4))
        with await admission.enter():
            with pytest.raises(ApiError) as refused:
                await admission.enter()
            assert refused.value.status_code == 429
        assert (admission.running, admission.waiting) == (0, 0)

    run_virtual(run())


def test_a_run_that_would_wait_too_long_by_what_runs_took_is_refused_at_once() -> None:
    async def run() -> None:
        admission = Admission(AdmissionBounds(runs=1, queue=100, wait_seconds=3))
        with await admission.enter():
            waiting = [asyncio.create_task(admission.enter()) for _ in range(3)]
            await until(lambda: admission.waiting == 3)
            with pytest.raises(ApiError):
                admission.check()  # a run takes a second, so the fourth would wait four
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        assert (admission.running, admission.waiting) == (0, 0)

    asyncio.run(run())


def test_a_slot_that_was_handed_over_is_left_by_the_run_and_only_once() -> None:
    async def run() -> None:
        admission = Admission(AdmissionBounds(runs=1))
        slot = (await admission.enter()).hand_over()
        slot.leave()
        slot.leave()
        assert admission.running == 0

    asyncio.run(run())


def test_when_the_server_stops_waiting_runs_are_refused_and_none_begins() -> None:
    async def run() -> None:
        admission = Admission(AdmissionBounds(runs=1, queue=5))
        slot = await admission.enter()
        waiting = asyncio.create_task(admission.enter())
        await until(lambda: admission.waiting == 1)
        admission.close()
        for refused in (waiting, asyncio.create_task(admission.enter())):
            with pytest.raises(ApiError) as error:
                await refused
            assert (error.value.status_code, error.value.body["error"]["code"]) == (503, "server_stops")
        slot.leave()
        assert admission.running == 0

    asyncio.run(run())


@given(st.lists(st.sampled_from(["enter", "leave", "cancel", "tick"]), max_size=40), st.integers(1, 3))
def test_whatever_happens_no_slot_is_lost_and_none_is_given_twice(what: list[str], runs: int) -> None:
    async def run() -> None:
        admission = Admission(AdmissionBounds(runs=runs, queue=4))
        tasks: list[asyncio.Task[Slot]] = []
        for at, act in enumerate(what):
            if act == "enter":
                tasks.append(asyncio.create_task(admission.enter()))
            elif act == "cancel" and tasks:
                tasks[at % len(tasks)].cancel()
            elif act == "leave":
                for slot in _slots(tasks)[:1]:
                    slot.leave()
                continue  # the next one may be cancelled in the very turn in which it was let in
            await asyncio.sleep(0)
            assert admission.running <= runs
            assert admission.waiting <= 4
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for slot in _slots(tasks):
            slot.leave()
        assert (admission.running, admission.waiting) == (0, 0)

    asyncio.run(run())


def _slots(tasks: list[asyncio.Task[Slot]]) -> list[Slot]:
    return [task.result() for task in tasks if task.done() and not task.cancelled() and task.exception() is None]
