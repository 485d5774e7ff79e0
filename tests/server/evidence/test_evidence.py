"""`/v1/evidence` as clients see it: a real server on a real socket."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from agent.errors import PolicyError
from agent.rstool import EvidenceBundle, tool_definition
from agent.trace import Trace
from server.chat.service import Service
from server.evidence.service import EvidenceService
from tests.server.live import ANSWER, SEARCH, Hanging, HangingPolicy, make_service, serving

QUESTION = "Where was the director of Aurora Falls born?"


def talk(use: Callable[[httpx2.AsyncClient], Awaitable[Any]], service: Service | None = None) -> Any:
    async def run() -> Any:
        async with (
            serving(service or make_service()) as address,
            httpx2.AsyncClient(base_url=address, trust_env=False, timeout=20) as client,
        ):
            return await use(client)

    return asyncio.run(run())


def post(service: Service | None = None, **body: Any) -> httpx2.Response:
    return talk(lambda client: client.post("/v1/evidence", json={"question": QUESTION} | body), service)


def frames(text: str) -> list[Any]:
    """What a stream holds: frames of data only, and `[DONE]`."""
    *blocks, done = text.strip().split("\n\n")
    assert done == "data: [DONE]"
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def with_hanging(part: str) -> tuple[Service, Hanging | HangingPolicy]:
    service = make_service()
    if part == "source":
        source = Hanging()
        return replace(
            service, agent=replace(service.agent, sources=dict.fromkeys(("web", "kg", "all"), source))
        ), source
    policy = HangingPolicy()
    return replace(service, agent=replace(service.agent, policy=policy)), policy


def test_the_reply_holds_the_bundle_and_its_text_for_a_model():
    reply = post().json()
    bundle = EvidenceBundle.model_validate(reply["bundle"])
    assert (reply["object"], reply["id"], reply["downstream"]) == ("evidence", bundle.trace_id, None)
    assert (bundle.outcome, bundle.answer) == ("found", "Trieste")
    assert [claim.text for claim in bundle.claims] == [
        "Lina Orr was born in Trieste.",
        "Lina Orr directed Aurora Falls.",
    ]
    assert reply["text"] == bundle.to_prompt()
    assert reply["text"].startswith(bundle.notice)


def test_a_stream_sends_each_step_and_gives_the_bundle_last():
    response = post(stream=True)
    assert response.headers["content-type"].startswith("text/event-stream")
    first, *steps, last = frames(response.text)
    assert first == {"object": "evidence.step", "id": last["id"], "step": None}
    kinds = [frame["step"]["kind"] for frame in steps]
    assert kinds == [
        "thought", "planned", "searched", "searched", "gathered", "merged", "evidenced", "answered", "stopped",
    ]  # fmt: skip
    assert EvidenceBundle.model_validate(last["bundle"]).answer == "Trieste"
    whole = post().json()
    for reply in (last, whole):
        for changing in ("trace_id", "seconds"):
            del reply["bundle"][changing]
    assert last["bundle"] == whole["bundle"]
    assert last["text"] == whole["text"]


def test_a_step_comes_while_the_search_still_runs():
    async def use(client: httpx2.AsyncClient) -> list[str]:
        body = {"question": QUESTION, "stream": True}
        async with client.stream("POST", "/v1/evidence", json=body) as response:
            kinds: list[str] = []
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    kinds.append((json.loads(line.removeprefix("data: "))["step"] or {"kind": "begun"})["kind"])
                if kinds and kinds[-1] == "planned":
                    break
            return kinds

    service, source = with_hanging("source")
    assert talk(use, service) == ["begun", "thought", "planned"]
    assert source.let_go.is_set()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("part", ["source", "policy"])
def test_a_client_that_leaves_ends_the_search_and_its_trace_is_kept(part: str, *, stream: bool):
    service, hanging = with_hanging(part)
    kept: list[Trace] = []
    service = replace(service, keep=kept.append)

    async def use(client: httpx2.AsyncClient) -> None:
        pending = asyncio.create_task(client.post("/v1/evidence", json={"question": QUESTION, "stream": stream}))
        await hanging.requested.wait()
        pending.cancel()
        async with asyncio.timeout(1):
            await hanging.let_go.wait()

    talk(use, service)
    assert [trace.stopped.reason for trace in kept if trace.stopped] == ["cancelled"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_stops_says_so(*, stream: bool):
    service, hanging = with_hanging("source")

    async def use(client: httpx2.AsyncClient) -> httpx2.Response:
        pending = asyncio.create_task(client.post("/v1/evidence", json={"question": QUESTION, "stream": stream}))
        await hanging.requested.wait()
        service.runs.end()
        return await pending

    response = talk(use, service)
    last = response.text.strip().split("\n\n")[-1].removeprefix("data: ")
    assert json.loads(last)["error"]["code"] == "server_stops"
    assert response.status_code == (200 if stream else 503)


def test_an_engine_that_fails_is_a_bundle_that_says_so():
    reply = post(make_service((PolicyError("the endpoint is closed"),)))
    assert reply.status_code == 200
    assert reply.json()["bundle"]["outcome"] == "failed"
    assert reply.json()["bundle"]["ended"] == {"reason": "engine", "budget": None, "detail": "the endpoint is closed"}


@pytest.mark.parametrize("stream", [True, False])
def test_a_bug_is_an_error_object_without_its_text(*, stream: bool, caplog: pytest.LogCaptureFixture):
    response = post(make_service((ZeroDivisionError("a bug"),)), stream=stream)
    last = response.text.strip().split("\n\n")[-1].removeprefix("data: ")
    assert json.loads(last)["error"]["code"] == "internal_error"
    assert "a bug" not in response.text
    assert "ZeroDivisionError" in caplog.text or not stream  # outside of a stream the web server logs it


def test_the_arguments_choose_sources_size_effort_and_protocol():
    service = make_service((SEARCH, ANSWER))
    bundle = post(service, sources=["kg"], max_chars=700, effort="low", protocol="evidence").json()["bundle"]
    assert (bundle["protocol"], bundle["size"]["max_chars"]) == ("evidence", 700)
    search = EvidenceService.of(service).agents["evidence"]
    assert search.protocol.name == "evidence"


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ({"question": "  "}, "question", "empty"),
        ({"question": "x" * 300}, "question", "at most 200"),
        ({"question": 3}, "question", "valid string"),
        ({}, "question", '"question": "your question"'),
        ({"question": "q", "sources": ["x"]}, "sources", "choose from: web, kg"),
        ({"question": "q", "protocol": "x"}, "protocol", "choose from: cairn"),
        ({"question": "q", "effort": "x"}, "effort", "'low', 'medium' or 'high'"),
        ({"question": "q", "colour": "red"}, "colour", "not permitted"),
        (
            {"question": "q", "answer_with": {"model": "m", "base_url": "http://x"}},
            "answer_with.base_url",
            "not permitted",
        ),
        ({"question": "q", "answer_with": "m"}, "answer_with", ""),
    ],
)
def test_an_invalid_request_is_an_error_object_with_a_hint(body: Any, param: str, says: str):
    service = replace(make_service(()), question_chars=200)
    response = talk(lambda client: client.post("/v1/evidence", json=body), service)
    error = response.json()["error"]
    assert (response.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert says in error["message"]


def test_half_a_surrogate_pair_is_no_failure():
    response = talk(
        lambda client: client.post(
            "/v1/evidence", content=b'{"question": "Who \\ud800?"}', headers={"content-type": "application/json"}
        )
    )
    assert response.status_code in (200, 400)
    assert "error" in response.json() or response.json()["bundle"]["question"] == "Who ??"


def test_an_argument_whose_name_is_half_a_surrogate_pair_is_refused():
    body = b'{"question": "q", "\\ud800": 1}'
    response = talk(
        lambda client: client.post("/v1/evidence", content=body, headers={"content-type": "application/json"})
    )
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")


def test_the_tool_is_listed_for_function_calling_and_for_mcp():
    service = make_service()
    listed = talk(lambda client: client.get("/v1/tools"), service).json()
    assert listed["tools"] == [tool_definition(EvidenceService.of(service).agents)]
    names = [tool["name"] for tool in listed["mcp_tools"]]
    assert names == [
        "search_evidence",
        *(f"search_evidence_{what}" for what in ("start", "status", "result", "cancel")),
    ]
    parameters = listed["tools"][0]["function"]["parameters"]
    assert set(parameters["properties"]) == set(listed["mcp_tools"][0]["inputSchema"]["properties"])
    assert parameters["properties"]["sources"]["anyOf"][0]["items"]["enum"] == ["web", "kg"]
