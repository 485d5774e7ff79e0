"""What the page says of model servers on this machine: to whom, when, and how often it looks."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent.build.shipped import is_shipped, newest_checkpoint
from agent.policies.scripted import ScriptedPolicy
from agent.settings import CairnSettings
from server import launch
from server.chat.service import Service
from server.ui.routes import LocalServerFinder
from tests.agent.sources.live.apiserver import ApiServer
from tests.model_servers import listing, lm_studio, ollama, port_of
from tests.server.live import in_memory, make_service


async def offered(service: Service) -> list[dict[str, Any]]:
    async with in_memory(service) as client:
        return (await client.get("/api/ui")).json()["local_models"]


async def offered_once(service: Service) -> list[dict[str, Any]]:
    try:
        return await offered(service)
    finally:
        await service.aclose()


def use(monkeypatch: pytest.MonkeyPatch, *servers: ApiServer) -> None:
    monkeypatch.setattr("agent.policies.local_servers.PORTS", {port_of(server): "LM Studio" for server in servers})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"corpus": Path("documents")}, True),
        ({"checkpoint": newest_checkpoint()}, True),
        ({"checkpoint": Path("models/small-v1-3fa2")}, True),
        ({"base_url": "http://gpu:8000/v1", "model": "m"}, False),
        ({"checkpoint": Path("runs/mine")}, False),
        ({"model": "runs/mine"}, False),
        ({"policy": "transformers", "model": "m"}, False),
    ],
)
def test_models_are_offered_where_none_is_named(settings: dict[str, Any], expected: bool) -> None:
    assert is_shipped(CairnSettings(**settings)) is expected


def test_the_page_lists_which_models_could_write_and_how(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[list[dict[str, Any]], str]:
        async with asyncio.timeout(30), ApiServer(ollama("qwen3:8b", "phi4")) as server, ApiServer(lm_studio()) as bare:
            use(monkeypatch, server, bare)
            settings = CairnSettings(store=SecretStr("memory"))
            return await offered_once(launch.make_service(settings)), f"{server.base}/v1"

    found, base = asyncio.run(run())
    command = f"cairn serve --base-url {base} --model qwen3:8b"
    assert found == [{"server": "Ollama", "base_url": base, "models": ["qwen3:8b", "phi4"], "command": command}]


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        ({"host": "0.0.0.0", "insecure": True}, None),
        ({"base_url": "http://127.0.0.1:1/v1", "model": "m"}, None),
        ({}, ScriptedPolicy(("<answer>Yes</answer>",))),
    ],
    ids=["other machines are served", "a model is connected", "a policy is given"],
)
def test_nothing_is_looked_for_and_nothing_offered(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], policy: ScriptedPolicy | None
) -> None:
    async def run() -> tuple[list[dict[str, Any]], int]:
        async with asyncio.timeout(30), ApiServer(ollama("qwen3:8b")) as server:
            use(monkeypatch, server)
            service = launch.make_service(CairnSettings(store=SecretStr("memory"), **settings), policy=policy)
            return await offered_once(service), len(server.requests)

    assert asyncio.run(run()) == ([], 0)


def test_pages_that_load_at_the_same_time_or_soon_after_look_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> int:
        async with asyncio.timeout(30), ApiServer(ollama("qwen3:8b")) as server:
            use(monkeypatch, server)
            service = make_service(local_models=LocalServerFinder(CairnSettings()))
            lists = await asyncio.gather(*[offered(service) for _ in range(5)])
            assert all(lists)
            return len(server.requests)

    assert asyncio.run(run()) == 1


def test_a_model_that_is_loaded_later_is_offered_when_the_page_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> list[list[dict[str, Any]]]:
        async with asyncio.timeout(30), ApiServer(lm_studio()) as server:
            use(monkeypatch, server)
            service = make_service(local_models=LocalServerFinder(CairnSettings(), ttl_seconds=0))
            before = await offered(service)
            server.routes["/v1/models"] = listing("phi-4", owned_by="organization_owner")
            return [before, await offered(service)]

    before, after = asyncio.run(run())
    assert before == []
    assert after[0]["models"] == ["phi-4"]


def test_the_servers_own_port_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> int:
        async with asyncio.timeout(30), ApiServer(ollama("qwen3:8b")) as server:
            use(monkeypatch, server)
            assert not await LocalServerFinder(CairnSettings(port=port_of(server)))()
            return len(server.requests)

    assert asyncio.run(run()) == 0
