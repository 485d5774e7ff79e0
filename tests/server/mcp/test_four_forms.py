"""One run, four forms: Python, the function tool, HTTP and MCP (over HTTP and stdio) give the same bundle, apart from its id and times."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters

from agent.rstool import EvidenceBundle, ToolArguments, call_tool, gather
from agent.settings import CairnSettings
from agent.world import load_world
from server.chat.service import Service
from server.evidence.service import EvidenceService
from server.launch import make_service as make_real_service
from tests.server.live import make_service, serving

ROOT = str(Path(__file__).parents[3])
STDIO = """
import asyncio
from server.mcp.commands import serve_stdio
from tests.server.live import make_service
asyncio.run(serve_stdio(make_service()))
"""
ENVIRONMENT = {"PYTHONPATH": ROOT, "CAIRN_WORLD": "test-v2", "CAIRN_FETCH": "false"}  # as of this process
GOLDEN = Path(__file__).parents[2] / "golden" / "evidence.json"
CHANGING = ("trace_id", "seconds", "versions")
SCRIPTED = ToolArguments(question="Where was the director of Aurora Falls born?")
REAL = tuple(
    ToolArguments(question=one.question) for one in load_world("test-v2").questions if one.type in ("chain1", "chain2")
)[:2]


def stable(bundle: EvidenceBundle | dict[str, Any]) -> dict[str, Any]:
    """The JSON form without what differs from run to run."""
    read = EvidenceBundle.model_validate(bundle)
    assert read.trace_id
    return {name: value for name, value in read.model_dump(mode="json").items() if name not in CHANGING}


async def every_form(address: str, evidence: EvidenceService, tool_call: ToolArguments) -> dict[str, dict[str, Any]]:
    arguments = tool_call.model_dump(mode="json")
    async with httpx2.AsyncClient(base_url=address, trust_env=False, timeout=60) as http:
        whole = await http.post("/v1/evidence", json=arguments)
        streamed = await http.post("/v1/evidence", json=arguments | {"stream": True})
    async with Client(f"{address}/mcp") as client:
        over_mcp = await client.call_tool("search_evidence", arguments)
        started: Any = (await client.call_tool("search_evidence_start", arguments)).structured_content
        waiting = {"id": started["id"], "wait_seconds": 25}
        fetched = await client.call_tool("search_evidence_result", waiting)
    return {
        "python": stable(
            await gather(tool_call.question, agent=evidence.agents, budget=tool_call.budget, **tool_call.choice)
        ),
        "function tool": stable(await call_tool(arguments, agent=evidence.agents)),
        "http": stable(whole.json()["bundle"]),
        "http, streamed": stable(last_frame(streamed.text)),
        "mcp": stable(over_mcp.structured_content),
        "mcp, started": stable(fetched.structured_content),
    }


async def over_stdio(arguments: list[str], tool_call: ToolArguments) -> dict[str, dict[str, Any]]:
    """The forms of a process that a client starts."""
    server = StdioServerParameters(command=sys.executable, args=arguments, env=ENVIRONMENT)
    said = tool_call.model_dump(mode="json")
    async with asyncio.timeout(100), Client(server) as client:
        called = await client.call_tool("search_evidence", said)
        started: Any = (await client.call_tool("search_evidence_start", said)).structured_content
        fetched = await client.call_tool("search_evidence_result", {"id": started["id"], "wait_seconds": 25})
    return {
        "stdio": stable(called.structured_content or {}),
        "stdio, started": stable(fetched.structured_content or {}),
    }


def last_frame(text: str) -> dict[str, Any]:
    """The bundle of a stream: the last frame before `[DONE]`."""
    return json.loads(text.strip().split("\n\n")[-2].removeprefix("data: "))["bundle"]


@asynccontextmanager
async def running(make: Callable[[], Service]) -> AsyncGenerator[tuple[str, EvidenceService]]:
    service = make()
    async with asyncio.timeout(100), serving(service) as address:
        yield address, EvidenceService.of(service)


def forms_of(make: Callable[[], Service], tool_call: ToolArguments) -> dict[str, dict[str, Any]]:
    async def run() -> dict[str, dict[str, Any]]:
        async with running(make) as (address, evidence):
            return await every_form(address, evidence, tool_call)

    return asyncio.run(run())


def assert_equal(forms: dict[str, dict[str, Any]], expected: dict[str, Any]) -> None:
    for form, bundle in forms.items():
        assert bundle == expected, form


def test_a_scripted_run_is_the_golden_bundle_in_every_form():
    forms = forms_of(make_service, SCRIPTED)
    golden = EvidenceBundle.model_validate_json(GOLDEN.read_text(encoding="utf-8"))
    assert_equal(forms, stable(golden))


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [{}, {"max_chars": 700}], ids=str)
def test_a_process_that_speaks_mcp_on_its_streams_gives_the_same_bundle(arguments: dict[str, Any]):
    tool_call = SCRIPTED.model_copy(update=arguments)
    forms = asyncio.run(over_stdio(["-c", STDIO], tool_call))
    expected = asyncio.run(
        gather(tool_call.question, agent=EvidenceService.of(make_service()).agents, budget=tool_call.budget)
    )
    assert_equal(forms, stable(expected))


@pytest.mark.parametrize(
    "arguments",
    [{"max_chars": 700}, {"effort": "low"}, {"protocol": "evidence"}, {"sources": ("kg",)}, {"effort": "high"}],
    ids=str,
)
def test_arguments_mean_the_same_in_every_form(arguments: dict[str, Any]):
    forms = forms_of(make_service, SCRIPTED.model_copy(update=arguments))
    assert_equal(forms, forms["python"])


@pytest.mark.slow
@pytest.mark.parametrize("tool_call", REAL, ids=lambda tool_call: tool_call.question)
def test_a_run_of_the_embedded_policy_is_the_same_in_every_form(tool_call: ToolArguments):
    forms = forms_of(lambda: make_real_service(CairnSettings()), tool_call)
    forms |= asyncio.run(over_stdio(["-m", "agent.cli", "mcp"], tool_call))
    assert_equal(forms, forms["python"])
    assert forms["python"]["outcome"] == "found"
