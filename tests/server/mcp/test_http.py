"""`/mcp` over HTTP: the MCP Python client against a live server, under the new protocol and the one before it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import SecretStr

from agent.rstool import EvidenceBundle
from agent.trace import Trace
from server.auth.keys import caller
from server.auth.middleware import Rules
from server.chat.service import Service
from server.evidence.service import EvidenceService
from server.evidence.tools import tool_list
from tests.server.live import Hanging, make_service, serving
from tests.server.mcp.clients import MODES, QUESTION, SOON, ProgressLog, call, text_of


def talk(use: Callable[[Client], Awaitable[Any]], service: Service | None = None, *, mode: str = "auto") -> Any:
    async def run() -> Any:
        async with serving(service or make_service()) as address, Client(f"{address}/mcp", mode=mode) as client:
            return await use(client)

    return asyncio.run(run())


def with_hanging_source() -> tuple[Service, Hanging, list[Trace]]:
    source, kept = Hanging(), list[Trace]()
    service = make_service()
    agent = replace(service.agent, sources=dict.fromkeys(("web", "kg", "all"), source))
    return replace(service, agent=agent, keep=kept.append), source, kept


@pytest.mark.parametrize("mode", MODES)
def test_the_five_tools_are_listed_with_schemas_of_arguments_and_results(mode: str):
    listed = talk(lambda client: client.list_tools(), mode=mode).tools
    sent = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]
    assert sent == json.loads(json.dumps(tool_list(EvidenceService.of(make_service()).agents)))


@pytest.mark.parametrize("mode", MODES)
def test_one_call_gives_the_bundle_as_data_and_as_labelled_text_and_reports_each_step(mode: str):
    progress = ProgressLog()
    result = talk(
        lambda client: client.call_tool("search_evidence", {"question": QUESTION}, progress_callback=progress),
        mode=mode,
    )
    bundle = EvidenceBundle.model_validate(result.structured_content)
    assert (result.is_error, bundle.outcome, bundle.answer) == (False, "found", "Trieste")
    assert text_of(result) == bundle.to_prompt()
    assert text_of(result).startswith(bundle.notice)
    assert progress.numbers == list(range(1, len(progress.numbers) + 1))
    assert "Planned 2 searches" in progress.sentences
    assert progress.sentences[-1] == "Ended: answered"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("search_evidence", {"question": "  "}, "the question is empty"),
        ("search_evidence", {}, "question: it is missing"),
        ("search_evidence", {"question": "q", "sources": ["x"]}, "choose from: web, kg"),
        ("search_evidence_start", {"question": "q", "protocol": "x"}, "choose from: cairn"),
        ("search_evidence_status", {"id": "unknown"}, "there is no search 'unknown'"),
        ("search_evidence_status", {"id": "x", "wait_seconds": 999}, "less than or equal to 25"),
        ("search_evidence_cancel", {}, "id: it is missing"),
    ],
)
def test_what_a_model_can_fix_is_a_result_that_says_so(mode: str, tool: str, arguments: Any, says: str):
    result = talk(lambda client: call(client, tool, **arguments), mode=mode)
    assert result.is_error
    assert says in text_of(result)


def test_a_bug_is_a_result_without_its_text(caplog: pytest.LogCaptureFixture):
    service = make_service((ZeroDivisionError("a bug"),))
    result = talk(lambda client: call(client, "search_evidence", question="q"), service)
    assert result.is_error
    assert "a bug" not in text_of(result)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_leaves_ends_the_run_and_its_trace_is_kept(mode: str):
    async def run() -> None:
        service, source, kept = with_hanging_source()
        async with serving(service) as address:
            async with Client(f"{address}/mcp", mode=mode) as client:
                pending = asyncio.create_task(client.call_tool("search_evidence", {"question": "q"}))
                await source.requested.wait()
                pending.cancel()
            async with asyncio.timeout(1):
                await source.let_go.wait()
        assert [trace.stopped.reason for trace in kept if trace.stopped] == ["cancelled"]

    asyncio.run(run())


@pytest.mark.parametrize("mode", MODES)
def test_cancel_reaches_the_run_in_less_than_a_second_while_the_client_stays(mode: str):
    async def use(client: Client) -> None:
        pending = asyncio.create_task(client.call_tool("search_evidence", {"question": "q"}))
        await source.requested.wait()
        pending.cancel()
        async with asyncio.timeout(1):
            await source.let_go.wait()
        assert (await client.list_tools()).tools

    service, source, kept = with_hanging_source()
    talk(use, service, mode=mode)
    assert [trace.stopped.reason for trace in kept if trace.stopped] == ["cancelled"]


@pytest.mark.parametrize("mode", MODES)
def test_a_started_search_is_waited_for_and_fetched_by_another_client(mode: str):
    async def run() -> None:
        async with serving(make_service()) as address:
            async with Client(f"{address}/mcp", mode=mode) as one:
                started = (await call(one, "search_evidence_start", question=QUESTION)).structured_content
            assert started["state"] == "running"
            async with Client(f"{address}/mcp", mode=mode) as other:
                state = await call(other, "search_evidence_status", id=started["id"], wait_seconds=20)
                assert state.structured_content["state"] == "ended"
                assert state.structured_content["latest"][-1] == "Ended: answered"
                result = await call(other, "search_evidence_result", id=started["id"])
                assert EvidenceBundle.model_validate(result.structured_content).answer == "Trieste"

    asyncio.run(run())


def test_a_started_search_is_cancelled_by_its_id():
    async def use(client: Client) -> None:
        id = (await call(client, "search_evidence_start", question=QUESTION)).structured_content["id"]
        await source.requested.wait()
        running = await call(client, "search_evidence_result", id=id)
        assert (running.is_error, "is still running" in text_of(running)) == (True, True)
        cancelled = await call(client, "search_evidence_cancel", id=id)
        assert source.let_go.is_set()
        assert cancelled.structured_content["state"] == "cancelled"
        gone = await call(client, "search_evidence_result", id=id)
        assert (gone.is_error, "was cancelled" in text_of(gone)) == (True, True)

    service, source, kept = with_hanging_source()
    talk(use, service)
    assert len(kept) == 1


def test_a_server_that_stops_ends_started_searches_and_calls():
    async def run() -> None:
        service, source, kept = with_hanging_source()
        async with serving(service, grace=SOON) as address, Client(f"{address}/mcp") as client:
            pending = asyncio.create_task(client.call_tool("search_evidence", {"question": "q"}))
            await source.requested.wait()
            source.requested.clear()
            await call(client, "search_evidence_start", question=QUESTION)
            await source.requested.wait()
            service.runs.end()
            result = await pending
            assert (result.is_error, "The server was stopped" in text_of(result)) == (True, True)
        assert len(kept) == 2

    asyncio.run(run())


# The access middleware

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer right"}, 200),
        ({"authorization": "Bearer right", "host": "evil.example"}, 403),
        ({"authorization": "Bearer right", "origin": "https://evil.example"}, 403),
    ],
)
def test_host_origin_and_key_are_checked(headers: dict[str, str], status: int):
    async def run() -> httpx2.Response:
        rules = Rules(key=SecretStr("right"))
        async with serving(make_service(), rules) as address, httpx2.AsyncClient(trust_env=False) as client:
            return await client.post(f"{address}/mcp", json=INITIALIZE, headers=ACCEPT | headers)

    response = asyncio.run(run())
    assert response.status_code == status
    assert response.headers["x-request-id"]


def test_a_client_with_the_key_is_served():
    async def run() -> Any:
        headers = {"authorization": "Bearer right"}
        async with (
            serving(make_service(), Rules(key=SecretStr("right"))) as address,
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=20) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
        ):
            return await call(client, "search_evidence", question=QUESTION)

    assert asyncio.run(run()).structured_content["answer"] == "Trieste"


@pytest.mark.parametrize("mode", MODES)
def test_a_run_knows_for_whom_it_runs(mode: str):
    seen: list[str] = []

    def keep(trace: Trace) -> None:
        seen.append(caller().request_id)

    async def run() -> None:
        service = replace(make_service(), keep=keep)
        headers = {"x-request-id": "mine"}
        async with (
            serving(service) as address,
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=20) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
        ):
            await call(client, "search_evidence", question=QUESTION)
            started: Any = (await call(client, "search_evidence_start", question=QUESTION)).structured_content
            await call(client, "search_evidence_status", id=started["id"], wait_seconds=20)

    asyncio.run(run())
    assert seen == ["mine", "mine"]


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b'"\\ud800"', b"\xff", b"[]", b"3", b""])
def test_a_body_that_is_no_message_is_refused(body: bytes):
    async def run() -> httpx2.Response:
        async with serving(make_service()) as address, httpx2.AsyncClient(trust_env=False, timeout=20) as client:
            headers = ACCEPT | {"content-type": "application/json"}
            return await client.post(f"{address}/mcp", content=body, headers=headers)

    response = asyncio.run(run())
    assert response.status_code == 400
    assert "error" in response.json()


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_are_no_sessions_to_listen_to_or_to_end(method: str):
    async def run() -> httpx2.Response:
        async with serving(make_service()) as address, httpx2.AsyncClient(trust_env=False) as client:
            return await client.request(method, f"{address}/mcp", headers={"accept": "text/event-stream"})

    response = asyncio.run(run())
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_a_body_that_is_too_large_is_refused():
    async def run() -> httpx2.Response:
        rules = Rules(body_bytes=1000)
        async with serving(make_service(), rules) as address, httpx2.AsyncClient(trust_env=False) as client:
            return await client.post(f"{address}/mcp", json=INITIALIZE | {"more": "x" * 2000}, headers=ACCEPT)

    assert asyncio.run(run()).status_code == 413
