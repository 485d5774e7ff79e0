"""Half a surrogate pair, which JSON can hold and UTF-8 cannot: from a page or a client, it breaks no answer."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult, Source
from server.chat.service import Service
from tests.server.live import QUESTION, in_memory, make_service

REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": QUESTION},
    "/v1/responses": {"input": "Where was she born?"},
    "/v1/evidence": {"question": "Where was she born?"},
    "/retrieve": {"queries": ["Orr"]},
}


class Halves:
    """A page that holds them wherever it can."""

    async def search(self, request: SearchRequest) -> SearchResult:
        text = "Lina Orr \ud800 was born in Trieste."
        return SearchResult(
            (Passage(id="\ud800", source="web", title="t\udc00", text=text, url="https://a.org/\ud801"),)
        )


def halving() -> Service:
    sources: dict[str, Source] = dict.fromkeys(("web", "kg", "all"), Halves())
    service = make_service()
    return replace(service, agent=replace(service.agent, sources=sources))


def post(service: Service, path: str, body: bytes) -> httpx2.Response:
    async def run() -> httpx2.Response:
        async with asyncio.timeout(20), in_memory(service) as client:
            return await client.post(path, content=body, headers={"content-type": "application/json"})

    return asyncio.run(run())


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", REQUESTS)
def test_a_page_that_holds_it_is_answered_from(path: str, *, stream: bool) -> None:
    answer = post(halving(), path, json.dumps(REQUESTS[path] | {"stream": stream}).encode())
    assert answer.status_code == 200
    assert '"error":{' not in answer.text
    assert "Trieste" in answer.text


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("body", [{"instructions": "\ud800"}, {"user": "\ud800"}, {"metadata": {"a\udc00": "\ud800"}}])
def test_a_client_that_says_it_gets_it_back_as_a_question_mark(body: dict[str, Any], *, stream: bool) -> None:
    request = REQUESTS["/v1/responses"] | body | {"stream": stream}
    answer = post(make_service(), "/v1/responses", json.dumps(request).encode())
    assert answer.status_code == 200
    assert '"error":{' not in answer.text
    (name,) = body
    last = json.loads(answer.text.strip().split("\n")[-1].removeprefix("data: ")) if stream else answer.json()
    assert "?" in str((last["response"] if stream else last)[name])
