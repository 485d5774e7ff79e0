"""One question under our six protocols with the shipped checkpoint: over HTTP by model id, and from the command."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.build.shipped import CHECKPOINTS
from agent.cli import run as cairn
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.model_folder import ABOUT
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_names
from agent.settings import CairnSettings, load_settings
from agent.trace import Answered, Thought, Trace
from server.launch import make_service
from tests.server.live import serving
from tests.shipped import CT2, NAME

QUESTION = "What is the country of Spulaven?"
"""One search answers it; every protocol can ask it."""


@pytest.fixture(scope="module")
def served() -> dict[str, dict[str, Any]]:
    """Model id → completion, from one server."""

    async def ask_all() -> dict[str, dict[str, Any]]:
        async with serving(make_service(load_settings())) as address, httpx2.AsyncClient(trust_env=False) as client:
            answered: dict[str, dict[str, Any]] = {}
            for name in protocol_names():
                body = {"model": f"cairn/{name}", "messages": [{"role": "user", "content": QUESTION}]}
                reply = await client.post(f"{address}/v1/chat/completions", json=body, timeout=60)
                assert reply.status_code == 200, reply.text
                answered[name] = reply.json()
            return answered

    return asyncio.run(ask_all())


@pytest.mark.parametrize("name", protocol_names())
def test_every_protocol_is_answered_alike_over_http_and_from_the_command(
    name: str, served: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cairn(["ask", QUESTION, "--protocol", name, "--json"]) == 0
    trace = Trace.model_validate(json.loads(capsys.readouterr().out))
    message, body = served[name]["choices"][0]["message"], served[name]
    assert trace.stopped is not None
    assert trace.stopped.reason == body["cairn"]["stopped"] == "answered"
    assert trace.answer
    assert message["content"].startswith(trace.answer)  # greedy: the same checkpoint says the same
    assert body["usage"]["num_search_queries"] == trace.usage.searches >= 1
    assert body["usage"]["completion_tokens"] == trace.usage.policy_tokens
    assert any(isinstance(step, Thought) for step in trace.steps)
    assert message["reasoning_content"]
    assert [step.by for step in trace.steps if isinstance(step, Answered)] == ["policy"]


def test_one_checkpoint_speaks_every_protocol_and_is_loaded_and_closed_once(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert service.models == ["cairn", *(f"cairn/{name}" for name in protocol_names())]
    asyncio.run(service.aclose())
    assert loaded == closed == [CT2.parent.name]


def test_a_checkpoints_folder_is_enough_to_serve_it_under_the_protocols_that_it_speaks(tmp_path: Path) -> None:
    own = Path(shutil.copytree(CT2, tmp_path / "own"))
    about = json.loads((own / ABOUT).read_text(encoding="utf-8")) | {"protocols": ["cairn", "multisearch"]}
    (own / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    service = make_service(load_settings(model=str(own)))
    assert service.models == ["cairn", "cairn/cairn", "cairn/multisearch"]
    assert service.agent.policy.name == NAME
    asyncio.run(service.aclose())


def test_a_checkpoints_folder_is_enough_to_ask_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cairn(["ask", QUESTION, "--model", str(CT2), "--json"]) == 0
    trace = Trace.model_validate(json.loads(capsys.readouterr().out))
    assert (trace.policy, trace.protocol) == (NAME, "cairn")
    assert trace.answer
    assert cairn(["ask", QUESTION, "--model", str(CHECKPOINTS)]) == 1
    assert "holds no model" in capsys.readouterr().err
