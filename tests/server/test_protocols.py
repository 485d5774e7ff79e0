"""One question under our six protocols over HTTP, by model id, and a served profile by its own."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from agent.loop.agent import Agent
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_names
from agent.settings import CairnSettings
from agent.sources.base import Source
from agent.trace import Trace
from server.launch import make_service
from tests.agent.test_golden_protocols import Library, protocol_of, script_of
from tests.server.live import QUESTION, in_memory
from tests.server.live import make_service as service_of


async def completion(agent: Agent, model: str) -> Any:
    async with in_memory(service_of(agent=agent)) as client:
        request = {"model": model, "messages": [{"role": "user", "content": "Who wrote Dune?"}]}
        return (await client.post("/v1/chat/completions", json=request)).json()


def agent_of(name: str) -> Agent:
    sources: dict[str, Source] = {key: Library(key, "</search>") for key in ("web", "news", "all", "kg", "documents")}
    return Agent(ScriptedPolicy(script_of(protocol_of(name))), protocol_of("cairn"), sources)


@pytest.mark.parametrize("name", protocol_names())
def test_a_model_id_chooses_the_protocol(name: str):
    answered = asyncio.run(completion(agent_of(name), f"cairn/{name}"))
    assert answered["choices"][0]["message"]["content"].startswith("Frank Herbert")


@pytest.mark.parametrize("own", protocol_names())
def test_the_model_cairn_is_the_protocol_that_the_server_was_started_with(own: str):
    seen: list[Trace] = []
    agent = replace(agent_of(own), protocol=protocol_of(own))

    async def post() -> None:
        async with in_memory(service_of(agent=agent, keep=seen.append)) as client:
            for model in ({"model": "cairn"}, {}, {"model": "cairn/cairn"}):
                await client.post("/v1/chat/completions", json={**model, "messages": QUESTION})

    asyncio.run(post())
    assert [trace.protocol for trace in seen] == [own, own, "cairn"]


def test_a_served_profile_is_a_model_id_too(monkeypatch: pytest.MonkeyPatch):
    def build(settings: CairnSettings, **_: object) -> Agent:
        agent = agent_of("search-r1")
        return Agent(agent.policy, protocol_of("search-r1"), agent.sources)

    monkeypatch.setattr("server.launch.build_agent", build)
    models = make_service(CairnSettings()).models
    assert {"cairn", "cairn/dag", "cairn/search-r1"} <= set(models)
