"""One question under our six protocols with the shipped checkpoints: over HTTP by model id, and from the command."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.build.agent import policies_of
from agent.build.shipped import CHECKPOINTS, newest_checkpoint, shipped_checkpoint
from agent.cli import run as cairn
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_names
from agent.settings import CairnSettings, load_settings
from agent.trace import Answered, Thought, Trace
from server.launch import make_service
from tests.server.live import serving

ASKED = "What is the country of Spulaven?"
"""One search answers it; every protocol can ask it."""


@pytest.fixture(scope="module")
def served() -> dict[str, dict[str, Any]]:
    """Model id → completion, from one server."""

    async def ask_all() -> dict[str, dict[str, Any]]:
        async with serving(make_service(load_settings())) as address, httpx2.AsyncClient(trust_env=False) as client:
            answered: dict[str, dict[str, Any]] = {}
            for name in protocol_names():
                body = {"model": f"cairn/{name}", "messages": [{"role": "user", "content": ASKED}]}
                reply = await client.post(f"{address}/v1/chat/completions", json=body, timeout=60)
                assert reply.status_code == 200, reply.text
                answered[name] = reply.json()
            return answered

    return asyncio.run(ask_all())


@pytest.mark.parametrize("name", protocol_names())
def test_every_protocol_is_answered_alike_over_http_and_from_the_command(
    name: str, served: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cairn(["ask", ASKED, "--protocol", name, "--json"]) == 0
    trace = Trace.model_validate(json.loads(capsys.readouterr().out))
    message, told = served[name]["choices"][0]["message"], served[name]
    assert trace.stopped is not None
    assert trace.stopped.reason == told["cairn"]["stopped"] == "answered"
    assert trace.answer
    assert message["content"].startswith(trace.answer)  # greedy: the same checkpoint says the same
    assert told["usage"]["num_search_queries"] == trace.usage.searches >= 1
    assert told["usage"]["completion_tokens"] == trace.usage.policy_tokens
    assert any(isinstance(step, Thought) for step in trace.steps)
    assert message["reasoning_content"]
    assert [step.by for step in trace.steps if isinstance(step, Answered)] == ["policy"]


def test_each_protocol_has_the_checkpoint_that_speaks_it_and_each_is_loaded_and_closed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []
    closed: list[str] = []

    class Named(ScriptedPolicy):
        async def aclose(self) -> None:
            closed.append(self.name)

    def load(folder: Path) -> Named:
        loaded.append(folder.parent.name)
        return Named((), name=folder.parent.name)

    monkeypatch.setattr(EmbeddedPolicy, "load", load)
    service = make_service(CairnSettings(world="test-v1"))
    spoken = {name: service.policies.get(name, service.agent.policy).name for name in service.protocols}
    newest = newest_checkpoint().parent.name
    assert spoken == dict.fromkeys(protocol_names(), newest) | {"cairn": "tiny-v1", "multisearch": "tiny-v1"}
    assert loaded == ["tiny-v1", newest]
    asyncio.run(service.aclose())
    assert sorted(closed) == sorted(loaded)
    assert service.models == ["cairn", *(f"cairn/{name}" for name in protocol_names())]


@pytest.mark.parametrize(
    "settings",
    [
        CairnSettings(world="test-v1", checkpoint=shipped_checkpoint(CairnSettings(protocol="dag"))),
        CairnSettings(policy="openai", base_url="http://127.0.0.1:1/v1", model="m"),
    ],
)
def test_a_model_that_somebody_named_speaks_every_protocol(settings: CairnSettings) -> None:
    own = ScriptedPolicy(())
    assert set(map(id, policies_of(settings, protocol_names(), own=own).values())) == {id(own)}


def test_a_checkpoints_folder_is_enough_to_serve_it_under_the_protocols_that_it_speaks() -> None:
    service = make_service(load_settings(model=str(CHECKPOINTS / "tiny-v1")))
    assert service.models == ["cairn", "cairn/cairn", "cairn/multisearch"]
    assert service.agent.policy.name == "cairn-tiny-v1"
    asyncio.run(service.aclose())


def test_a_checkpoints_folder_is_enough_to_ask_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cairn(["ask", ASKED, "--model", str(CHECKPOINTS / "tiny-v1" / "ct2"), "--json"]) == 0
    trace = Trace.model_validate(json.loads(capsys.readouterr().out))
    assert (trace.policy, trace.protocol) == ("cairn-tiny-v1", "cairn")
    assert trace.answer
    assert cairn(["ask", ASKED, "--model", str(CHECKPOINTS)]) == 1
    assert "holds no model" in capsys.readouterr().err
