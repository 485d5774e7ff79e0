"""One run, four forms: Python, the function tool, HTTP and MCP give the same bundle, apart from its id and times."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client

from agent.rstool import EvidenceBundle, ToolArguments, call_tool, gather
from agent.settings import CairnSettings
from agent.world import load_world
from server.chat import Service
from server.evidence.desk import Desk, desk_of
from server.launch import make_service as make_real_service
from tests.server.live import make_service, serving

GOLDEN = Path(__file__).parents[2] / "golden" / "evidence.json"
CHANGING = ("trace_id", "seconds", "versions")
WORLD = load_world("test-v1")
SCRIPTED = ToolArguments(question="Where was the director of Aurora Falls born?")
REAL = tuple(ToolArguments(question=question.question) for question in WORLD.questions[:2])


def told(bundle: EvidenceBundle | dict[str, Any]) -> dict[str, Any]:
    """The JSON form without what differs from run to run."""
    read = EvidenceBundle.model_validate(bundle)
    assert read.trace_id
    return {name: value for name, value in read.model_dump(mode="json").items() if name not in CHANGING}


async def every_form(address: str, desk: Desk, asked: ToolArguments) -> dict[str, dict[str, Any]]:
    arguments = asked.model_dump(mode="json")
    async with httpx2.AsyncClient(base_url=address, trust_env=False, timeout=60) as http:
        whole = await http.post("/v1/evidence", json=arguments)
        streamed = await http.post("/v1/evidence", json=arguments | {"stream": True})
    async with Client(f"{address}/mcp") as client:
        over_mcp = await client.call_tool("search_evidence", arguments)
        started: Any = (await client.call_tool("search_evidence_start", arguments)).structured_content
        waiting = {"id": started["id"], "wait_seconds": 25}
        fetched = await client.call_tool("search_evidence_result", waiting)
    return {
        "python": told(await gather(asked.question, agent=desk.agents, budget=asked.budget, **asked.choice)),
        "function tool": told(await call_tool(arguments, agent=desk.agents)),
        "http": told(whole.json()["bundle"]),
        "http, streamed": told(last_frame(streamed.text)),
        "mcp": told(over_mcp.structured_content),
        "mcp, started": told(fetched.structured_content),
    }


def last_frame(text: str) -> dict[str, Any]:
    """The bundle of a stream: the last frame before `[DONE]`."""
    return json.loads(text.strip().split("\n\n")[-2].removeprefix("data: "))["bundle"]


@asynccontextmanager
async def running(make: Callable[[], Service]) -> AsyncGenerator[tuple[str, Desk]]:
    service = make()
    async with asyncio.timeout(100), serving(service) as address:
        yield address, desk_of(service)


def forms_of(make: Callable[[], Service], asked: ToolArguments) -> dict[str, dict[str, Any]]:
    async def run() -> dict[str, dict[str, Any]]:
        async with running(make) as (address, desk):
            return await every_form(address, desk, asked)

    return asyncio.run(run())


def assert_equal(forms: dict[str, dict[str, Any]], expected: dict[str, Any]) -> None:
    for form, bundle in forms.items():
        assert bundle == expected, form


def test_a_scripted_run_is_the_golden_bundle_in_every_form():
    forms = forms_of(make_service, SCRIPTED)
    golden = EvidenceBundle.model_validate_json(GOLDEN.read_text(encoding="utf-8"))
    assert_equal(forms, told(golden))


@pytest.mark.parametrize(
    "arguments",
    [{"max_chars": 700}, {"effort": "low"}, {"protocol": "evidence"}, {"sources": ("kg",)}, {"effort": "high"}],
    ids=str,
)
def test_arguments_mean_the_same_in_every_form(arguments: dict[str, Any]):
    forms = forms_of(make_service, SCRIPTED.model_copy(update=arguments))
    assert_equal(forms, forms["python"])


@pytest.mark.slow
@pytest.mark.parametrize("asked", REAL, ids=lambda asked: asked.question)
def test_a_run_of_the_embedded_policy_is_the_same_in_every_form(asked: ToolArguments):
    forms = forms_of(lambda: make_real_service(CairnSettings()), asked)
    assert_equal(forms, forms["python"])
    assert forms["python"]["outcome"] == "found"
