"""The rules of docs/wire.md that no other test holds, and that its table names tests that there are."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.errors import PolicyError
from agent.policies.scripted import Script
from server.chat.service import Service
from server.mcp.calls import PROGRESS_SECONDS
from tests.server.live import ANSWER, QUESTION, SEARCH, make_service, serving
from tests.server.runs.replicas import keeping_service, start

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "wire.md").read_text(encoding="utf-8")
STREAMS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": QUESTION, "stream": True},
    "/v1/responses": {"input": "Where was she born?", "stream": True},
    "/v1/evidence": {"question": "Where was she born?", "stream": True},
}


def post(path: str, service: Service | None = None, **body: Any) -> httpx2.Response:
    async def run() -> httpx2.Response:
        async with (
            serving(service or make_service()) as address,
            httpx2.AsyncClient(base_url=address, trust_env=False, timeout=20) as client,
        ):
            return await client.post(path, json=STREAMS[path] | body)

    return asyncio.run(run())


def frames(turns: Script = (SEARCH, ANSWER), **body: Any) -> list[str]:
    """What stands behind `data:` in a stream of chat completions."""
    text = post("/v1/chat/completions", make_service(turns), **body).text
    return [block.removeprefix("data: ") for block in text.strip().split("\n\n")]


def chunks(turns: Script = (SEARCH, ANSWER), **body: Any) -> list[dict[str, Any]]:
    *sent, done = frames(turns, stream_options={"include_usage": True}, **body)
    assert done == "[DONE]"
    return [json.loads(frame) for frame in sent]


def test_every_rule_has_a_test_and_every_test_that_is_named_is_there() -> None:
    named = re.findall(r"`(tests/[\w/.]+)::(test_\w+)`", TABLE)
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path, _ in named}
    assert [f"{path}::{name}" for path, name in named if f"def {name}(" not in texts[path]] == []
    rules = [line for line in TABLE.splitlines() if line.startswith("| ") and not line.startswith("| rule")]
    assert len(rules) > 40
    assert [rule for rule in rules if "::test_" not in rule] == []


def assert_unhindered(response: httpx2.Response) -> None:
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["x-request-id"]


@pytest.mark.parametrize("path", STREAMS)
def test_every_stream_says_that_nothing_on_the_way_may_hold_it_back(path: str) -> None:
    assert_unhindered(post(path))


def test_the_events_of_a_run_say_so_too() -> None:
    async def run() -> httpx2.Response:
        async with (
            serving(keeping_service("memory")) as address,
            httpx2.AsyncClient(base_url=address, trust_env=False, timeout=20) as client,
        ):
            return await client.get(f"/api/runs/{await start(client)}/events")

    assert_unhindered(asyncio.run(run()))


def part_of(chunk: dict[str, Any]) -> str:
    """Which part of a stream a chunk is; typed steps may come between all of them."""
    if not chunk["choices"]:
        return "usage"
    (choice,) = chunk["choices"]
    if choice["finish_reason"]:
        return "end"
    (*names,) = choice["delta"]
    return {"role": "role", "reasoning_content": "reasoning", "content": "content", "annotations": "citations"}.get(
        names[0] if names else "", "step"
    )


def test_the_parts_of_a_stream_come_in_their_order() -> None:
    sent = [part_of(chunk) for chunk in chunks(answer_style="with_evidence")]
    order = ("role", "reasoning", "content", "citations", "end", "usage")
    parts = [part for part in sent if part != "step"]
    assert parts == sorted(parts, key=order.index)
    assert set(parts) == set(order)
    assert [sent.count(part) for part in ("role", "citations", "end", "usage")] == [1, 1, 1, 1]


def test_what_is_ours_stands_beside_the_choices_with_its_version() -> None:
    ours = [chunk for chunk in chunks() if "cairn" in chunk]
    assert {chunk["cairn"]["v"] for chunk in ours} == {1}
    assert all(chunk["cairn"]["kind"] for chunk in ours)
    assert {len(choice["delta"]) for chunk in ours for choice in chunk["choices"]} == {0}


def test_tools_of_a_client_are_never_called() -> None:
    tools = [{"type": "function", "function": {"name": "web_search", "parameters": {"type": "object"}}}]
    got = chunks(tools=tools, tool_choice="required")
    reasons = [choice["finish_reason"] for chunk in got for choice in chunk["choices"]]
    assert [reason for reason in reasons if reason] == ["stop"]
    assert not any("tool_calls" in choice["delta"] for chunk in got for choice in chunk["choices"])


def test_silence_lasts_no_longer_than_clients_bear() -> None:
    assert make_service().heartbeat_seconds <= 10
    assert PROGRESS_SECONDS <= 5


def test_an_error_is_the_last_frame_of_a_stream() -> None:
    last = json.loads(frames((SEARCH, PolicyError("out of memory")))[-1])
    assert set(last) == {"error"}
    assert set(last["error"]) == {"message", "type", "param", "code"}


def test_a_stream_whose_client_asks_for_null_usage_is_answered() -> None:
    assert frames(stream_options={"include_usage": None})[-1] == "[DONE]"
