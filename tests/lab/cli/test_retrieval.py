"""The speed part of the benchmark: real servers, every answer counted; and the page that is written."""

import asyncio
import json
from pathlib import Path

import httpx2
import pytest

from agent.errors import SetupError
from agent.sources.base import SearchRequest
from agent.sources.corpus.build import Dense
from agent.sources.corpus.source import build_index
from lab.benchmarks.retrieval import METRICS, IndexFigures, Interval, Quality, SetFigures
from lab.benchmarks.retrieve import KINDS, ClientLoad, ServingSpeed, measure_speed, plain_app, plain_search
from lab.cli.retrieval import report, tables
from tests.agent.sources.corpus.encoding import MINILM, needs_model

TOPICS = ["glaciers", "bread", "violins", "harbours", "volcanoes", "chess", "orchids", "comets"]


def index_of(folder: Path, *, dense: bool) -> Path:
    lines = [{"id": topic, "title": topic, "text": f"This is about {topic}."} for topic in TOPICS]
    (folder / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    build_index([folder / "documents.jsonl"], folder / "index", dense=Dense(model=MINILM) if dense else None)
    return folder / "index"


@pytest.mark.slow
def test_both_servers_answer_every_request_of_every_client(tmp_path: Path):
    speed = measure_speed(
        index_of(tmp_path, dense=False),
        [f"what is {topic}" for topic in TOPICS],
        passages=8,
        requests=60,
        modes=("bm25",),
        clients=(1, 8),
        rounds=1,
    )
    assert [(load.kind, load.clients) for load in speed.loads] == [(k, many) for many in (1, 8) for k in KINDS["bm25"]]
    assert speed.lost == 0
    assert all(load.qps > 0 and 0 < load.p50_ms <= load.p99_ms for load in speed.loads)
    plain = speed.as_dict()
    ratio = plain["bm25_qps_8"] / plain["bm25_plain_qps_8"]
    assert plain["bm25_speedup_8"] == pytest.approx(ratio, rel=0.01, abs=0.006)  # it has two decimals


def test_times_faster_are_shown_beside_each_plain_server():
    rates = {"plain": 10.0, "alike": 40.0, "ours": 50.0}
    loads = [
        ClientLoad(mode="hybrid", kind=kind, clients=8, requests=60, lost=0, qps=rates[kind], p50_ms=1.0, p99_ms=2.0)
        for kind in KINDS["hybrid"]
    ]
    figures = ServingSpeed(passages=8, loads=tuple(loads)).as_dict()
    assert (figures["hybrid_speedup_8"], figures["hybrid_speedup_alike_8"]) == (5.0, 1.25)


def test_a_server_that_cannot_start_says_why(tmp_path: Path):
    with pytest.raises(SetupError, match="there is no index folder"):
        measure_speed(tmp_path / "nothing", ["x"], passages=0, modes=("bm25",), clients=(1,), rounds=1)


@pytest.fixture(scope="module")
def dense_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_of(tmp_path_factory.mktemp("dense"), dense=True)


@needs_model
@pytest.mark.parametrize(("mode", "encoder"), [("bm25", "ours"), ("dense", "the library's"), ("hybrid", "ours")])
def test_the_plain_servers_give_the_same_documents_as_ours(dense_index: Path, mode: str, encoder: str):
    from agent.sources.corpus.hybrid import open_corpus

    assert mode in ("bm25", "dense", "hybrid")

    async def ask() -> tuple[list[str], list[str]]:
        ours = open_corpus(dense_index, mode=mode)
        found = [passage.id for passage in (await ours.search(SearchRequest("what are violins", limit=3))).passages]
        transport = httpx2.ASGITransport(app=plain_app(plain_search(dense_index, mode, ours=encoder == "ours")))
        async with asyncio.timeout(20), httpx2.AsyncClient(transport=transport, base_url="http://plain") as client:
            answer = await client.post("/retrieve", json={"queries": ["what are violins"], "topk": 3})
        return found, [hit["document"]["id"] for hit in answer.json()["result"][0]]

    ours, plain = asyncio.run(ask())
    assert ours == plain
    assert ours[0] == "violins"


def quality() -> Quality:
    modes = {"bm25": 0.4, "dense": 0.5, "hybrid": 0.6}
    figures = {
        mode: {metric: Interval(at, at - 0.1, at + 0.1) for metric in map(str, METRICS)} for mode, at in modes.items()
    }
    index = IndexFigures(1234, 0.5, 2_000_000, 9.5, 3_000_000, "flat", 1.0)
    return Quality(
        model=MINILM,
        rerank="",
        sets={"qa_one": SetFigures(questions=7, index=index, modes=figures, scores={})},
        modes=tuple(modes),
        mean=figures,
        differences={"hybrid - bm25": Interval(0.2, 0.1, 0.3)},
    )


def speed() -> ServingSpeed:
    def load(kind: str, qps: float) -> ClientLoad:
        assert kind in ("ours", "plain", "alike")
        return ClientLoad(mode="dense", kind=kind, clients=64, requests=9, lost=0, qps=qps, p50_ms=1, p99_ms=20)

    return ServingSpeed(passages=1234, loads=(load("plain", 100), load("alike", 140), load("ours", 350)))


def test_the_page_holds_every_figure_and_the_verdict():
    page = report(quality(), speed())
    assert "its mean all-gold@10 is better than both parts" in page
    assert "| hybrid | 0.600 | 0.600 | 0.600 | 0.600 | 0.600 | 0.600 |" in page
    assert "| hybrid − BM25 | +0.200 [+0.100, +0.300] |" in page
    assert "| qa_one | 1,234 | 0.50 | 2.0 | 9.5 | 3.0 | flat | 1.000 |" in page
    assert "| dense | 64 | 100 | 20 ms | 140 | 20 ms | 350 | 20 ms | 3.50 | 2.50 | 0 |" in page
    assert "POST /retrieve" not in report(quality(), None)


def test_where_nothing_is_encoded_there_is_one_plain_server():
    loads = (ClientLoad("bm25", "plain", 8, 9, 0, 100.0, 1, 20), ClientLoad("bm25", "ours", 8, 9, 0, 50.0, 1, 20))
    page = report(quality(), ServingSpeed(passages=9, loads=loads))
    assert "| BM25 | 8 | 100 | 20 ms | – | – | 50 | 20 ms | 0.50 | – | 0 |" in page


def test_the_figures_have_plain_names():
    assert speed().as_dict()["dense_speedup_64"] == 3.5
    assert speed().as_dict()["dense_speedup_alike_64"] == 2.5
    assert quality().as_dict()["mean_all_gold_10"] == {"bm25": 0.4, "dense": 0.5, "hybrid": 0.6}
    assert quality().as_dict()["hybrid_beats_both"] is True
    assert [table.title for table in tables(quality(), speed())][-1] == "POST /retrieve"
