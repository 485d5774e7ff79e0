"""`POST /retrieve` over real HTTP: Search-R1's shape, and many clients at once."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.evidence import Passage
from agent.settings import CairnSettings
from agent.sources.base import SearchRequest, SearchResult
from server.launch import make_retriever
from server.retrieval.service import TOPK, RetrievalBounds, Retriever, RetrieveRequest, document
from tests.server.live import Hanging, make_service
from tests.server.retrieval.counting import CountingSource, ask, error, post, retriever


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


def test_a_query_without_words_finds_nothing_and_asks_no_source() -> None:
    counting = CountingSource()
    result = post(retriever(counting), queries=["", "orr", " \n"], topk=1).json()["result"]
    assert [len(documents) for documents in result] == [0, 1, 0]
    assert counting.queries == ["orr"]


def test_equal_queries_are_searched_once_and_each_is_answered() -> None:
    counting = CountingSource()
    result = post(retriever(counting), queries=["a", "b", "a", " a "], topk=1).json()["result"]
    assert [documents[0]["id"] for documents in result] == ["a-1", "b-1", "a-1", "a-1"]
    assert sorted(counting.queries) == ["a", "b"]


def test_address_and_date_come_along_where_there_are_any() -> None:
    passage = Passage(id="7", source="web", title='A "b"', text="t", url="https://example.org", date="2026-01-02")
    assert document(passage) == {
        "id": "7",
        "contents": '"A "b""\nt',
        "url": "https://example.org",
        "date": "2026-01-02",
    }


def test_a_long_query_is_cut_and_half_a_surrogate_pair_breaks_nothing() -> None:
    counting = CountingSource()
    body = b'{"queries": ["aaaa\\ud800", "' + b"b" * 50 + b'"], "topk": 1}'
    headers = {"content-type": "application/json"}
    served = retriever(counting, query_chars=10)
    response = ask(lambda client: client.post("/retrieve", content=body, headers=headers), served)
    assert response.status_code == 200
    assert sorted(counting.queries) == ["aaaa?", "b" * 10]


def test_the_full_server_answers_on_the_same_route() -> None:
    found = post(make_service(), queries=["orr"], topk=1, source="kg").json()
    assert found["result"][0][0]["id"] == "kg:orr"
    assert post(make_service(), queries=["orr"]).json()["result"][0][0]["id"] == "all:orr"


def test_a_source_can_be_named_and_the_corpus_is_the_default() -> None:
    assert post(queries=["orr"], source="web").json()["result"][0][0]["id"] == "web:orr"
    refused = post(queries=["orr"], source="moon")
    assert (refused.status_code, error(refused)["param"]) == (400, "source")
    assert "choose from: corpus, web" in error(refused)["message"]


def test_queries_of_all_requests_run_together() -> None:
    counting = CountingSource(wait=asyncio.Event())

    async def use(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        bodies = [{"queries": [f"q{n}", f"p{n}"], "topk": 1} for n in range(32)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(client.post("/retrieve", json=body)) for body in bodies]
            await counting.until(64)
            assert counting.wait is not None
            counting.wait.set()
        return [task.result() for task in tasks]

    responses = ask(use, retriever(counting))
    assert counting.most == 64
    assert [r.json()["result"][1][0]["id"] for r in responses] == [f"p{n}-1" for n in range(32)]


def test_a_large_request_leaves_room_to_a_small_one() -> None:
    counting = CountingSource(wait=asyncio.Event())

    async def use(client: httpx2.AsyncClient) -> None:
        large = asyncio.create_task(client.post("/retrieve", json={"queries": [f"q{n}" for n in range(100)]}))
        await counting.until(3)
        small = asyncio.create_task(client.post("/retrieve", json={"queries": ["small"]}))
        await counting.until(4)
        assert counting.queries == ["q0", "q1", "q2", "small"]
        assert counting.wait is not None
        counting.wait.set()
        assert len((await large).json()["result"]) == 100
        assert (await small).status_code == 200

    ask(use, retriever(counting, at_once=4, at_once_each=3))
    assert counting.most == 4


def test_a_source_that_never_waits_leaves_the_others_their_turn() -> None:
    turns: list[int] = [0]

    class Instant:
        async def search(self, request: SearchRequest) -> SearchResult:
            turns.append(turns[0])
            return SearchResult()

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


def test_a_source_that_hangs_keeps_no_other_one_waiting() -> None:
    hanging = Hanging()
    served = Retriever({"corpus": CountingSource(), "web": hanging}, bounds=RetrievalBounds(at_once=1))

    async def use(client: httpx2.AsyncClient) -> httpx2.Response:
        waiting = asyncio.create_task(client.post("/retrieve", json={"queries": ["a"], "source": "web"}))
        await hanging.requested.wait()
        found = await client.post("/retrieve", json={"queries": ["a"]})
        waiting.cancel()
        await hanging.let_go.wait()
        return found

    assert ask(use, served).status_code == 200


@pytest.mark.parametrize(("queries", "threads"), [(2, 0), (200, 1)])
def test_many_documents_are_written_beside_the_event_loop(queries: int, threads: int) -> None:
    class Counting(ThreadPoolExecutor):
        submitted = 0

        def submit(self, *args: Any, **kwargs: Any) -> Any:
            self.submitted += 1
            return super().submit(*args, **kwargs)

    async def run() -> int:
        counting = Counting()
        asyncio.get_running_loop().set_default_executor(counting)
        request = RetrieveRequest(queries=[str(number) for number in range(queries)], topk=3)
        found = json.loads(await retriever().answer(request))
        assert [len(documents) for documents in found["result"]] == [3] * queries
        return counting.submitted

    assert asyncio.run(run()) == threads
