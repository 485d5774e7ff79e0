"""Another model answers from the evidence: only the operator's, and whatever goes wrong there is an outcome."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from agent.errors import SetupError
from agent.outbound.llm import LlmClient
from agent.outbound.retries import Retries
from agent.settings import CairnSettings
from server.chat.service import Service
from server.evidence.answering import SECONDS, Answering, answering_of
from tests.agent.rstool.reader_server import ReaderServer, reader_server
from tests.server.live import make_service, serving

REQUEST = {"question": "Where was the director of Aurora Falls born?"}


async def ask(service: Service, **body: Any) -> httpx2.Response:
    async with serving(service) as address, httpx2.AsyncClient(base_url=address, trust_env=False) as client:
        return await client.post("/v1/evidence", json=REQUEST | body, timeout=20)


def test_its_answer_stands_beside_ours():
    async def scene() -> tuple[Any, ReaderServer]:
        reader = ReaderServer(message={"role": "assistant", "content": "Triest"})
        async with reader_server(reader):
            answering = Answering([LlmClient(base_url=reader.url, model="small")])
            service = replace(make_service(), answering=answering)
            return (await ask(service, answer_with={"model": "small"})).json(), reader

    reply, reader = asyncio.run(scene())
    assert reply["downstream"]["outcome"] == "answered"
    assert (reply["downstream"]["answer"], reply["downstream"]["ours"]) == ("Triest", "Trieste")
    assert reply["bundle"]["answer"] == "Trieste"
    assert reply["text"] in str(reader.requests[0]["messages"][1]["content"])


def test_a_server_that_is_not_there_leaves_the_evidence():
    answering = Answering([LlmClient(base_url="http://127.0.0.1:9/v1", model="small", retries=Retries(0))])
    reply = asyncio.run(ask(replace(make_service(), answering=answering), answer_with={"model": "small"})).json()
    assert reply["downstream"]["outcome"] == "failed"
    assert reply["bundle"]["outcome"] == "found"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("models", [(), ("small",)])
def test_a_model_that_the_operator_did_not_name_is_refused_before_anything_starts(
    models: tuple[str, ...], *, stream: bool
):
    clients = [LlmClient(base_url="http://127.0.0.1:9/v1", model=model) for model in models]
    service = replace(make_service(()), answering=Answering(clients) if models else None)
    response = asyncio.run(ask(service, answer_with={"model": "other"}, stream=stream))
    error = response.json()["error"]
    assert (response.status_code, error["param"], error["code"]) == (404, "answer_with", "model_not_found")
    assert ("choose from: small" if models else "answer_url") in error["message"]


def test_the_settings_name_endpoint_key_and_models(monkeypatch: pytest.MonkeyPatch):
    assert answering_of(CairnSettings()) is None
    monkeypatch.setenv("CAIRN_ANSWER_MODELS", "a, b")
    monkeypatch.setenv("CAIRN_ANSWER_URL", "http://127.0.0.1:9/v1")
    answering = answering_of(CairnSettings())
    assert answering is not None
    assert answering.models == ("a", "b")
    for client in answering._clients.values():  # pyright: ignore[reportPrivateUsage]
        assert (client.seconds, client.retries.most) == (SECONDS, 1)  # a slot is held all the while
    asyncio.run(answering.aclose())


@pytest.mark.parametrize("half", [{"answer_url": "http://127.0.0.1:9/v1"}, {"answer_models": ("a",)}])
def test_half_of_the_setting_is_an_error(half: dict[str, Any]):
    with pytest.raises(SetupError, match="answer_url and answer_models"):
        answering_of(CairnSettings(**half))
