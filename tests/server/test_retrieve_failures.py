"""`POST /retrieve` over real HTTP: every way in which it can go wrong, and how its health is reported."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from agent.errors import SourceErrorKind
from agent.settings import CairnSettings
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.fuse import FusedSource
from server.auth.middleware import Rules
from server.chat.service import Service
from server.http.errors import ApiError
from server.launch import make_retriever
from server.retrieval.service import Retriever
from tests.agent.sources.kg.graphs import make_graph
from tests.agent.sources.live.apiserver import ApiServer, run
from tests.server.live import Hanging, make_service, serving
from tests.server.retrieval.counting import CountingSource, ask, error, post, retriever


def test_too_much_at_once_is_refused_with_a_time_to_come_back() -> None:
    counting = CountingSource(wait=asyncio.Event())

    async def use(client: httpx2.AsyncClient) -> httpx2.Response:
        first = asyncio.create_task(client.post("/retrieve", json={"queries": list("abcdefgh")}))  # alone: taken
        await counting.until(1)
        refused = await client.post("/retrieve", json={"queries": ["i"]})
        assert counting.wait is not None
        counting.wait.set()
        assert len((await first).json()["result"]) == 8
        again = await client.post("/retrieve", json={"queries": ["i"]})
        assert again.status_code == 200
        return refused

    refused = ask(use, retriever(counting, waiting=4))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert error(refused)["code"] == "server_busy"
    assert "8 queries are in progress, of at most 4" in error(refused)["message"]


def test_a_client_that_leaves_takes_its_work_along() -> None:
    source = Hanging()
    served = retriever(source, waiting=1)

    async def use(client: httpx2.AsyncClient) -> httpx2.Response:
        pending = asyncio.create_task(client.post("/retrieve", json={"queries": ["a", "b"]}))
        await source.requested.wait()
        pending.cancel()
        await source.let_go.wait()
        return await client.post("/retrieve", json={"queries": ["orr"], "source": "web"})

    assert ask(use, served).status_code == 200


def test_a_server_that_stops_says_so_and_closes_its_sources() -> None:
    source = Hanging()
    counting = CountingSource()
    served = Retriever({"corpus": source, "web": counting})

    async def use(client: httpx2.AsyncClient) -> httpx2.Response:
        pending = asyncio.create_task(client.post("/retrieve", json={"queries": ["a"]}))
        await source.requested.wait()
        served.runs.end()
        return await pending

    response = ask(use, served)
    assert (response.status_code, error(response)["code"]) == (503, "server_stops")
    assert counting.closed


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("auth", 502),
        ("quota", 429),
        ("rate", 429),
        ("bad_query", 400),
        ("upstream", 502),
        ("timeout", 504),
        ("parse", 502),
    ],
)
def test_a_failure_has_the_status_of_its_kind(kind: SourceErrorKind, status: int) -> None:
    response = post(retriever(CountingSource(fails={"bad": kind})), queries=["good", "bad"])
    assert response.status_code == status
    assert (error(response)["kind"], error(response)["code"]) == (kind, f"source_{kind}")
    assert error(response)["message"] == "The search for 'bad' failed: it broke"
    assert response.headers.get("retry-after") == ("2" if kind == "rate" else None)


def test_one_failure_ends_the_other_searches_of_its_request() -> None:
    counting = CountingSource(fails={"bad": "upstream"})
    source = Hanging()

    class Both:
        async def search(self, request: SearchRequest) -> SearchResult:
            if request.query != "bad":
                return await source.search(request)
            await source.requested.wait()
            return await counting.search(request)

    assert post(retriever(Both()), queries=["good", "bad"]).status_code == 502
    assert source.let_go.is_set()


def test_who_wants_it_gets_what_could_be_found() -> None:
    counting = CountingSource(fails={"bad": "timeout"})
    response = post(retriever(counting), queries=["good", "bad", "bad"], topk=1, partial=True)
    assert response.status_code == 200
    assert [len(documents) for documents in response.json()["result"]] == [1, 0, 0]
    assert response.json()["errors"] == [
        {"query": 1, "kind": "timeout", "message": "it broke"},
        {"query": 2, "kind": "timeout", "message": "it broke"},
    ]
    assert post(queries=["good"], partial=True).json()["errors"] == []


def test_nothing_found_while_a_source_behind_all_failed_is_listed_among_the_errors() -> None:
    class Nothing:
        async def search(self, request: SearchRequest) -> SearchResult:
            return SearchResult()

    source = FusedSource({"web": CountingSource(fails={"bad": "upstream"}), "corpus": Nothing()})
    response = post(retriever(source), queries=["good", "bad"], topk=1, partial=True)
    assert [len(documents) for documents in response.json()["result"]] == [1, 0]
    message = "web: it broke; corpus found nothing"
    assert response.json()["errors"] == [{"query": 1, "kind": "upstream", "message": message}]
    assert post(retriever(source), queries=["bad"]).status_code == 502


def test_a_source_that_never_answers_is_a_timeout() -> None:
    response = post(retriever(Hanging(), seconds=0.02), queries=["a"])
    assert (response.status_code, error(response)["kind"]) == (504, "timeout")


@pytest.mark.parametrize(
    ("body", "code", "hint"),
    [
        ({"queries": "one"}, "invalid_value", "'queries' cannot be used"),
        ({"queries": [1]}, "invalid_value", "'queries.0' cannot be used"),
        ({"queries": ["a"], "topk": -1}, "invalid_value", "'topk' cannot be used"),
        ({"queries": ["a"], "topk": 101}, "invalid_value", "at most 100 documents"),
        ({"queries": ["a", "b", "c"]}, "too_many_queries", "at most 2 in one request"),
        ({}, "missing_required_parameter", '"queries": ["your query"]'),
        ([], "invalid_body", '"queries": ["your query"]'),
    ],
)
def test_a_bad_body_is_answered_with_a_hint(body: Any, code: str, hint: str) -> None:
    served = retriever(queries=2)
    response = ask(lambda client: client.post("/retrieve", json=body), served)
    assert (response.status_code, error(response)["code"]) == (400, code)
    assert hint in error(response)["message"]


def test_a_body_over_the_limit_is_refused() -> None:
    response = post(rules=Rules(body_bytes=1000), queries=["a" * 2000])
    assert (response.status_code, error(response)["code"]) == (413, "body_too_large")


def test_with_a_key_it_asks_for_it() -> None:
    rules = Rules(key=SecretStr("s3cret"))
    assert error(post(rules=rules, queries=["a"]))["code"] == "invalid_api_key"
    assert post(rules=rules, queries=["a"], headers={"authorization": "Bearer s3cret"}).status_code == 200


def test_alone_there_is_no_policy_to_ask() -> None:
    response = ask(lambda client: client.post("/v1/chat/completions", json={"messages": []}))
    assert (response.status_code, error(response)["code"]) == (404, "unknown_url")
    assert "--retrieval-only" in error(response)["message"]
    assert "POST /retrieve" in error(response)["message"]


@pytest.mark.parametrize("served", [None, make_service()])
def test_it_is_healthy_and_ready(served: Service | None) -> None:
    async def use(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        return [await client.get("/healthz"), await client.get("/readyz"), await client.head("/readyz")]

    healthy, ready, head = ask(use, served)
    assert healthy.json() == {"status": "ok"}
    engine = {"engine": "scripted"} if served else {}
    assert ready.json() == {"status": "ready", "source": "all" if served else "corpus"} | engine
    assert (head.status_code, head.content) == (200, b"")


def test_an_index_that_does_not_answer_is_not_ready() -> None:
    counting = CountingSource(fails={"ready": "upstream"})

    async def use(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        return [await client.get("/readyz") for _ in range(3)]

    assert {r.status_code for r in ask(use, retriever(counting))} == {200}  # another source answers
    counting.queries.clear()
    responses = ask(use, Retriever({"corpus": counting}))
    assert {r.status_code for r in responses} == {503}
    assert responses[0].json() == {"status": "not ready", "source": "corpus", "kind": "upstream", "why": "it broke"}
    assert counting.queries == ["ready"]


@pytest.mark.parametrize("far", [True, False])
def test_being_ready_costs_no_credits_and_asks_no_far_source(*, far: bool) -> None:
    class Metered(CountingSource):
        credits_per_search = 1.0

    counting = CountingSource() if far else Metered()
    served = Retriever({"all": counting}, far=far)
    assert ask(lambda client: client.get("/readyz"), served).status_code == 200
    assert counting.queries == []


@pytest.mark.parametrize("named", ["corpus", "kg"])
def test_being_ready_calls_no_model_that_filters_what_is_found(tmp_path: Path, named: str) -> None:
    (tmp_path / "a.txt").write_text("It is ready.", encoding="utf-8")
    corpus = tmp_path / "a.txt" if named == "corpus" else None
    kg = make_graph(tmp_path, [("ready", "is", "it")]) if named == "kg" else None

    async def scene(model: ApiServer) -> None:
        url = model.base
        settings = CairnSettings(filtered=(named,), filter_url=url, filter_model="m", cache="", corpus=corpus, kg=kg)
        async with serving(make_retriever(settings)) as base, httpx2.AsyncClient(base_url=base) as client:
            assert (await client.get("/readyz")).json()["status"] == "ready"
            assert not model.requests
            answer = await client.post("/retrieve", json={"queries": ["ready"]})
            assert (answer.status_code, len(model.requests)) == (200, 1)

    run(scene)


def test_live_sources_are_far_and_documents_are_near(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A text.", encoding="utf-8")
    assert make_retriever(CairnSettings(live=True, cache="")).far
    assert not make_retriever(CairnSettings(live=True, cache="", corpus=tmp_path / "a.txt")).far
    assert not make_retriever(CairnSettings()).far


def test_an_answer_of_too_many_documents_or_bytes_is_refused() -> None:
    many = post(retriever(documents=5), queries=["a", "a", "b"], topk=2)
    assert (many.status_code, error(many)["code"]) == (400, "too_many_documents")
    assert "3 queries with 2 documents each" in error(many)["message"]
    long = post(retriever(answer_bytes=1000), queries=["a"] * 100, topk=2)
    assert (long.status_code, error(long)["code"]) == (400, "answer_too_large")


def test_large_answers_wait_for_their_readers_up_to_a_bound_and_small_ones_always_do() -> None:
    served = retriever(unread_bytes=3_000_000)
    with served.unread(b"x" * 2_000_000):
        with pytest.raises(ApiError, match="try again in a few seconds") as refused, served.unread(b"x" * 2_000_000):
            raise AssertionError("too many wait")
        assert refused.value.status_code == 429
        with served.unread(b"x" * 500):
            assert post(served, queries=["good"]).status_code == 200
    with served.unread(b"x" * 2_000_000):
        """What was read waits no longer."""
