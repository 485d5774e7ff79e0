"""`POST /retrieve` over real HTTP: Search-R1's shape, many clients at once, and every way in which it can go wrong."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from pydantic import SecretStr

from agent.errors import SourceError, SourceErrorKind
from agent.evidence import Passage
from agent.plan import Filter
from agent.settings import CairnSettings
from agent.sources.base import Source
from server.chat import Service
from server.gate import Rules
from server.launch import make_retriever
from server.retrieve import TOPK, Bounds, Retriever, RetrieveRequest, document
from tests.server.live import Hanging, Shelf, make_service, serving

T = TypeVar("T")


@dataclass
class Shelves:
    """Answers each query with as many passages as may be; counts what is asked, and how many at once."""

    asked: list[str] = field(default_factory=list[str])
    now: int = 0
    most: int = 0
    wait: asyncio.Event | None = None
    fails: Mapping[str, SourceErrorKind] = field(default_factory=dict[str, SourceErrorKind])
    closed: bool = False
    _waiting: dict[int, asyncio.Event] = field(default_factory=dict[int, asyncio.Event])

    async def until(self, count: int) -> None:
        """Wait until so many searches run."""
        if self.now < count:
            await self._waiting.setdefault(count, asyncio.Event()).wait()

    async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        self.asked.append(query)
        self.now += 1
        self.most = max(self.most, self.now)
        if event := self._waiting.get(self.now):
            event.set()
        try:
            if self.wait is not None:
                await self.wait.wait()
            if kind := self.fails.get(query):
                raise SourceError("it broke", kind=kind, retry_after=1.5 if kind == "rate" else None)
        finally:
            self.now -= 1
        return [
            Passage(id=f"{query}-{n}", source="corpus", title=f"T{n}\nof {query}", text=f"line\nof {n}", score=1 / n)
            for n in range(1, limit + 1)
        ]

    async def aclose(self) -> None:
        self.closed = True


def retriever(source: Source | None = None, **bounds: Any) -> Retriever:
    return Retriever({"corpus": source or Shelves(), "web": Shelf("web")}, bounds=Bounds(**bounds))


def ask(
    use: Callable[[httpx2.AsyncClient], Awaitable[T]],
    served: Retriever | Service | None = None,
    rules: Rules | None = None,
) -> T:
    async def run() -> T:
        async with (
            asyncio.timeout(20),
            serving(served or retriever(), rules) as address,
            httpx2.AsyncClient(base_url=address, trust_env=False, timeout=None) as client,
        ):
            return await use(client)

    return asyncio.run(run())


def post(
    served: Retriever | Service | None = None,
    *,
    rules: Rules | None = None,
    headers: Mapping[str, str] | None = None,
    **body: Any,
) -> httpx2.Response:
    return ask(lambda client: client.post("/retrieve", json=body, headers=headers), served, rules)


def error(response: httpx2.Response) -> dict[str, Any]:
    assert set(response.json()) == {"error"}
    return response.json()["error"]


def as_search_r1_reads(result: list[dict[str, Any]]) -> str:
    """What a trainer makes of one query's documents: the first line of `contents` is the title."""
    lines = [item["document"]["contents"].split("\n", 1) for item in result]
    return "".join(f"Doc {n}(Title: {title}) {text}\n" for n, (title, text) in enumerate(lines, start=1))


def test_a_trainer_of_search_r1_reads_the_answer_as_it_is() -> None:
    found = post(queries=["aurora", "orr"], topk=2, return_scores=True).json()
    assert list(found) == ["result"]
    assert found["result"][1] == [
        {"document": {"id": "orr-1", "contents": '"T1 of orr"\nline\nof 1'}, "score": 1.0},
        {"document": {"id": "orr-2", "contents": '"T2 of orr"\nline\nof 2'}, "score": 0.5},
    ]
    assert as_search_r1_reads(found["result"][0]) == (
        'Doc 1(Title: "T1 of aurora") line\nof 1\nDoc 2(Title: "T2 of aurora") line\nof 2\n'
    )


def test_without_scores_the_documents_stand_alone() -> None:
    found = post(queries=["orr"], topk=1).json()
    assert found == {"result": [[{"id": "orr-1", "contents": '"T1 of orr"\nline\nof 1'}]]}


@pytest.mark.parametrize("topk", [None, 0])
def test_topk_may_be_left_open(topk: int | None) -> None:
    assert len(post(queries=["orr"], topk=topk).json()["result"][0]) == TOPK


def test_a_step_in_which_no_rollout_searches_gets_an_empty_answer() -> None:
    assert post(queries=[], topk=3, return_scores=True).json() == {"result": []}


def test_a_query_without_words_finds_nothing_and_asks_nobody() -> None:
    shelves = Shelves()
    result = post(retriever(shelves), queries=["", "orr", " \n"], topk=1).json()["result"]
    assert [len(documents) for documents in result] == [0, 1, 0]
    assert shelves.asked == ["orr"]


def test_equal_queries_are_searched_once_and_each_is_answered() -> None:
    shelves = Shelves()
    result = post(retriever(shelves), queries=["a", "b", "a", " a "], topk=1).json()["result"]
    assert [documents[0]["id"] for documents in result] == ["a-1", "b-1", "a-1", "a-1"]
    assert sorted(shelves.asked) == ["a", "b"]


def test_address_and_date_come_along_where_there_are_any() -> None:
    passage = Passage(id="7", source="web", title='A "b"', text="t", url="https://example.org", date="2026-01-02")
    assert document(passage) == {
        "id": "7",
        "contents": '"A "b""\nt',
        "url": "https://example.org",
        "date": "2026-01-02",
    }


def test_a_long_query_is_cut_and_half_a_surrogate_pair_breaks_nothing() -> None:
    shelves = Shelves()
    body = b'{"queries": ["aaaa\\ud800", "' + b"b" * 50 + b'"], "topk": 1}'
    headers = {"content-type": "application/json"}
    served = retriever(shelves, query_chars=10)
    response = ask(lambda client: client.post("/retrieve", content=body, headers=headers), served)
    assert response.status_code == 200
    assert sorted(shelves.asked) == ["aaaa?", "b" * 10]


def test_the_full_server_answers_on_the_same_route() -> None:
    found = post(make_service(), queries=["orr"], topk=1, source="kg").json()
    assert found["result"][0][0]["id"] == "kg:orr"
    assert post(make_service(), queries=["orr"]).json()["result"][0][0]["id"] == "all:orr"


def test_a_source_can_be_named_and_the_corpus_is_the_default() -> None:
    assert post(queries=["orr"], source="web").json()["result"][0][0]["id"] == "web:orr"
    refused = post(queries=["orr"], source="moon")
    assert (refused.status_code, error(refused)["param"]) == (400, "source")
    assert "there are: corpus, web" in error(refused)["message"]


def test_queries_of_all_requests_run_together() -> None:
    shelves = Shelves(wait=asyncio.Event())

    async def use(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        bodies = [{"queries": [f"q{n}", f"p{n}"], "topk": 1} for n in range(32)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(client.post("/retrieve", json=body)) for body in bodies]
            await shelves.until(64)
            assert shelves.wait is not None
            shelves.wait.set()
        return [task.result() for task in tasks]

    responses = ask(use, retriever(shelves))
    assert shelves.most == 64
    assert [r.json()["result"][1][0]["id"] for r in responses] == [f"p{n}-1" for n in range(32)]


def test_a_large_request_leaves_room_to_a_small_one() -> None:
    shelves = Shelves(wait=asyncio.Event())

    async def use(client: httpx2.AsyncClient) -> None:
        large = asyncio.create_task(client.post("/retrieve", json={"queries": [f"q{n}" for n in range(100)]}))
        await shelves.until(3)
        small = asyncio.create_task(client.post("/retrieve", json={"queries": ["small"]}))
        await shelves.until(4)
        assert shelves.asked == ["q0", "q1", "q2", "small"]
        assert shelves.wait is not None
        shelves.wait.set()
        assert len((await large).json()["result"]) == 100
        assert (await small).status_code == 200

    ask(use, retriever(shelves, at_once=4, at_once_each=3))
    assert shelves.most == 4


def test_a_source_that_never_waits_leaves_the_others_their_turn() -> None:
    turns: list[int] = [0]

    class Instant:
        async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
            turns.append(turns[0])
            return []

    async def run() -> None:
        async def others() -> None:
            while True:
                await asyncio.sleep(0)
                turns[0] += 1

        neighbour = asyncio.create_task(others())
        await Retriever({"all": Instant()}).answer(RetrieveRequest(queries=[f"q{n}" for n in range(1000)]))
        neighbour.cancel()

    asyncio.run(run())
    assert len(set(turns[1:])) > 10


def test_too_much_at_once_is_refused_with_a_time_to_come_back() -> None:
    shelves = Shelves(wait=asyncio.Event())

    async def use(client: httpx2.AsyncClient) -> httpx2.Response:
        first = asyncio.create_task(client.post("/retrieve", json={"queries": list("abcdefgh")}))  # alone: taken
        await shelves.until(1)
        refused = await client.post("/retrieve", json={"queries": ["i"]})
        assert shelves.wait is not None
        shelves.wait.set()
        assert len((await first).json()["result"]) == 8
        again = await client.post("/retrieve", json={"queries": ["i"]})
        assert again.status_code == 200
        return refused

    refused = ask(use, retriever(shelves, waiting=4))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert error(refused)["code"] == "server_busy"
    assert "8 queries are on their way and 4 may be" in error(refused)["message"]


def test_a_client_that_leaves_takes_its_work_along() -> None:
    source = Hanging()
    served = retriever(source, waiting=1)

    async def use(client: httpx2.AsyncClient) -> httpx2.Response:
        asking = asyncio.create_task(client.post("/retrieve", json={"queries": ["a", "b"]}))
        await source.asked.wait()
        asking.cancel()
        await source.let_go.wait()
        return await client.post("/retrieve", json={"queries": ["orr"], "source": "web"})

    assert ask(use, served).status_code == 200


def test_a_server_that_stops_says_so_and_closes_its_sources() -> None:
    source = Hanging()
    shelves = Shelves()
    served = Retriever({"corpus": source, "web": shelves})

    async def use(client: httpx2.AsyncClient) -> httpx2.Response:
        asking = asyncio.create_task(client.post("/retrieve", json={"queries": ["a"]}))
        await source.asked.wait()
        served.runs.end()
        return await asking

    response = ask(use, served)
    assert (response.status_code, error(response)["code"]) == (503, "server_stops")
    assert shelves.closed


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
    response = post(retriever(Shelves(fails={"bad": kind})), queries=["good", "bad"])
    assert response.status_code == status
    assert (error(response)["kind"], error(response)["code"]) == (kind, f"source_{kind}")
    assert error(response)["message"] == "The search for 'bad' failed: it broke"
    assert response.headers.get("retry-after") == ("2" if kind == "rate" else None)


def test_one_failure_ends_the_other_searches_of_its_request() -> None:
    shelves = Shelves(fails={"bad": "upstream"})
    source = Hanging()

    class Both:
        async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
            if query != "bad":
                return await source.search(query, limit=limit)
            await source.asked.wait()
            return await shelves.search(query, limit=limit)

    assert post(retriever(Both()), queries=["good", "bad"]).status_code == 502
    assert source.let_go.is_set()


def test_who_wants_it_gets_what_could_be_found() -> None:
    shelves = Shelves(fails={"bad": "timeout"})
    response = post(retriever(shelves), queries=["good", "bad", "bad"], topk=1, partial=True)
    assert response.status_code == 200
    assert [len(documents) for documents in response.json()["result"]] == [1, 0, 0]
    assert response.json()["errors"] == [
        {"query": 1, "kind": "timeout", "message": "it broke"},
        {"query": 2, "kind": "timeout", "message": "it broke"},
    ]
    assert post(queries=["good"], partial=True).json()["errors"] == []


def test_a_source_that_never_answers_is_a_timeout() -> None:
    response = post(retriever(Hanging(), seconds=0.02), queries=["a"])
    assert (response.status_code, error(response)["kind"]) == (504, "timeout")


@pytest.mark.parametrize(
    ("body", "code", "mend"),
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
def test_a_bad_body_is_told_what_to_mend(body: Any, code: str, mend: str) -> None:
    served = retriever(queries=2)
    response = ask(lambda client: client.post("/retrieve", json=body), served)
    assert (response.status_code, error(response)["code"]) == (400, code)
    assert mend in error(response)["message"]


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
    assert ready.json() == {"status": "ready", "source": "all" if served else "corpus"}
    assert (head.status_code, head.content) == (200, b"")


def test_an_index_that_does_not_answer_is_not_ready() -> None:
    shelves = Shelves(fails={"ready": "upstream"})

    async def use(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        return [await client.get("/readyz") for _ in range(3)]

    responses = ask(use, retriever(shelves))
    assert {r.status_code for r in responses} == {503}
    assert responses[0].json() == {"status": "not ready", "source": "corpus", "kind": "upstream", "why": "it broke"}
    assert shelves.asked == ["ready"]


@pytest.mark.parametrize("far", [True, False])
def test_being_ready_costs_no_credits_and_asks_nobody_far_away(*, far: bool) -> None:
    class Metered(Shelves):
        credits_per_search = 1.0

    shelves = Shelves() if far else Metered()
    served = Retriever({"all": shelves}, far=far)
    assert ask(lambda client: client.get("/readyz"), served).status_code == 200
    assert shelves.asked == []


def test_live_sources_are_far_and_documents_are_near(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A text.", encoding="utf-8")
    assert make_retriever(CairnSettings(live=True, cache="")).far
    assert not make_retriever(CairnSettings(live=True, cache="", corpus=tmp_path / "a.txt")).far
    assert not make_retriever(CairnSettings()).far


def test_a_real_index_answers_many_clients_and_each_gets_its_own(tmp_path: Path) -> None:
    documents = [{"id": f"d{n}", "title": f"Town {n}", "text": f"Town {n} lies at kilometre{n}."} for n in range(200)]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")

    async def use(client: httpx2.AsyncClient) -> list[list[str]]:
        async def one(client_number: int) -> list[str]:
            wanted = range(client_number, 200, 40)
            body = {"queries": [f"kilometre{n}" for n in wanted], "topk": 1, "return_scores": True}
            found = (await client.post("/retrieve", json=body)).json()["result"]
            assert all(documents[0]["score"] > 0 for documents in found)
            return [documents[0]["document"]["id"] for documents in found]

        return list(await asyncio.gather(*(one(n) for n in range(40))))

    served = make_retriever(CairnSettings(corpus=tmp_path / "docs.jsonl"))
    assert served.default == "corpus"
    assert ask(use, served) == [[f"d{n}" for n in range(start, 200, 40)] for start in range(40)]
