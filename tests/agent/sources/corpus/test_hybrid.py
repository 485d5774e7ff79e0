"""A corpus searched by words and by meaning: what fusion changes, what filters and re-ranking do, what is refused."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from agent.errors import CorpusError, SourceError
from agent.evidence import Passage
from agent.plan import Filter
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.sources.corpus.build import Dense
from agent.sources.corpus.dense import DENSE, DenseIndex, build_dense
from agent.sources.corpus.encoder import Encoder
from agent.sources.corpus.hybrid import HybridSource, Pair, Reranker, fuse_rows, open_corpus
from agent.sources.corpus.source import CorpusSource, build_index
from tests.agent.sources.corpus.encoding import MINILM, WordEncoder, needs_faiss, needs_model, tiny_cross_encoder

pytestmark = needs_faiss
T = TypeVar("T")

DOCUMENTS: list[dict[str, str]] = [
    {"id": "film", "title": "Aurora Falls", "text": "A motion picture by Lina Orr.", "date": "2025-03-01"},
    {"id": "bread", "title": "Bread", "text": "Flour, water and salt, baked.", "date": "2024-01-01"},
    {"id": "code", "title": "XK-417", "text": "A part with the number XK-417.", "date": "2020-05-05"},
    {"id": "rain", "title": "Rain", "text": "Water that falls from clouds.", "date": "2026-01-01"},
]


def within(made: Callable[[], Awaitable[T]]) -> T:
    async def run() -> T:
        async with asyncio.timeout(20):
            return await made()

    return asyncio.run(run())


def index_of(folder: Path, documents: Sequence[dict[str, str]], dense: Dense | None = None) -> Path:
    file = folder / "documents.jsonl"
    file.write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")
    build_index([file], folder / "index", dense=dense)
    return folder / "index"


def ids(passages: Sequence[Passage]) -> list[str]:
    return [passage.id for passage in passages]


async def searched(source: Source, query: str, limit: int = 4, filters: Sequence[Filter] = ()) -> SearchResult:
    found = await source.search(SearchRequest(query, limit=limit, filters=tuple(filters)))
    if isinstance(source, HybridSource):
        await source.aclose()
    return found


async def all_of(source: Source, queries: Sequence[str]) -> list[SearchResult]:
    found = [await source.search(SearchRequest(query, limit=4)) for query in queries]
    assert isinstance(source, HybridSource)
    await source.aclose()
    return found


def without_model(
    tmp_path: Path, documents: Sequence[dict[str, str]] = DOCUMENTS
) -> tuple[CorpusSource, DenseIndex, WordEncoder]:
    """A corpus and its dense part by an encoder that needs no model."""
    corpus, encoder = CorpusSource(index_of(tmp_path, documents)), WordEncoder()
    texts = ((document["title"], document["text"]) for document in documents)
    build_dense(texts, tmp_path / "dense", count=len(documents), encoder=encoder)
    return corpus, DenseIndex(tmp_path / "dense"), encoder


def test_fusion_adds_reciprocal_ranks():
    fused = fuse_rows([[(1, 9.0), (2, 8.0)], [(2, 0.9), (3, 0.8)]], constant=10)
    assert fused == [(2, 1 / 12 + 1 / 11), (1, 1 / 11), (3, 1 / 12)]
    assert fuse_rows([[(5, 1.0)], [(4, 1.0)]]) == [(5, pytest.approx(1 / 11)), (4, pytest.approx(1 / 11))]
    assert fuse_rows([]) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with a dense part by a real model."""
    return index_of(tmp_path_factory.mktemp("corpus"), DOCUMENTS, Dense(model=MINILM))


@needs_model
def test_meaning_finds_what_words_cannot_and_words_find_what_meaning_blurs(folder: Path):
    hybrid = open_corpus(folder)
    assert isinstance(hybrid, HybridSource), "an index with a dense part is searched in both ways"
    assert hybrid.backend == "bm25+dense"
    assert ids(within(lambda: searched(open_corpus(folder, mode="bm25"), "who made the movie")).passages) == []
    meant, named = within(lambda: all_of(hybrid, ["who made the movie", "XK-417"]))
    assert (ids(meant.passages)[0], ids(named.passages)[0]) == ("film", "code")
    many, first = within(lambda: all_of(open_corpus(folder, mode="dense"), ["movie", "wet weather"]))
    assert len(many.passages) == 4
    assert ids(first.passages)[0] == "rain"
    assert 0.2 < first.passages[0].score < 1, "the score of dense search is the cosine"
    assert (first.backend, first.passages[0].rank, first.passages[0].source) == ("dense", 1, "corpus")


def test_an_index_without_a_dense_part_is_searched_by_words_and_says_so_where_more_is_wanted(tmp_path: Path):
    folder = index_of(tmp_path, DOCUMENTS)
    assert isinstance(open_corpus(folder), CorpusSource)
    with pytest.raises(CorpusError, match="has no dense part; build it with: cairn index build CORPUS"):
        open_corpus(folder, mode="hybrid")


def test_what_both_find_comes_first(tmp_path: Path):
    corpus, dense, encoder = without_model(tmp_path)
    found = within(lambda: searched(HybridSource(corpus, dense=dense, encoder=encoder), "baked flour"))
    assert ids(found.passages)[0] == "bread"
    assert found.passages[0].score == pytest.approx(2 / 11)
    assert [p.rank for p in found.passages] == [1, 2, 3, 4]


def test_with_filters_more_rows_are_looked_at_until_enough_pass(tmp_path: Path):
    many = [{"id": f"old{n}", "title": "Water", "text": f"water {n}", "date": "1999-01-01"} for n in range(400)]
    late = {"id": "late", "title": "Note", "text": "some water somewhere among other things", "date": "2026-02-02"}
    corpus, dense, encoder = without_model(tmp_path, [*many, late])
    after = [Filter(name="after", value="2026-01-01")]
    for words in (True, False):
        source = HybridSource(corpus, dense=dense, encoder=encoder, words=words, depth=10)
        assert ids(within(lambda s=source: searched(s, "water", limit=3, filters=after)).passages) == ["late"]
    source = HybridSource(corpus, dense=dense, encoder=encoder)
    found = within(lambda: searched(source, "water", filters=[Filter(name="site", value="a.org")]))
    assert len(found.passages) == 4
    assert found.notes == ("corpus cannot filter by 'site a.org': none of its documents has an address",)


@dataclass
class Held(WordEncoder):
    """Encodes no query until it may."""

    may: Event = field(default_factory=Event)

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        assert self.may.wait(20)
        return super().encode_queries(queries)


def test_queries_of_many_at_once_share_forward_passes(tmp_path: Path):
    corpus, dense, _ = without_model(tmp_path)
    encoder = Held()
    source = HybridSource(corpus, dense=dense, encoder=encoder)

    async def run() -> list[SearchResult]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(source.search(SearchRequest(f"water {n}", limit=2))) for n in range(60)]
            await asyncio.sleep(0)  # all are waiting then
            encoder.may.set()
        await source.aclose()
        return [task.result() for task in tasks]

    alone = HybridSource(corpus, dense=dense, encoder=encoder)
    results = within(run)
    assert sum(encoder.batches) == 60
    assert len(encoder.batches) < 20
    assert ids(results[7].passages) == ids(within(lambda: searched(alone, "water 7", limit=2)).passages)


def test_a_full_queue_is_a_source_error_and_no_group(tmp_path: Path):
    corpus, dense, encoder = without_model(tmp_path)
    source = HybridSource(corpus, dense=dense, encoder=encoder)
    within(source.aclose)
    with pytest.raises(SourceError, match="closed"):
        within(lambda: source.search(SearchRequest("water", limit=1)))


def test_another_model_or_other_documents_are_refused(tmp_path: Path):
    corpus, dense, encoder = without_model(tmp_path)
    with pytest.raises(CorpusError, match="built with the model words"):
        HybridSource(corpus, dense=dense, encoder=WordEncoder(fingerprint="another"))
    (tmp_path / "more").mkdir()
    other = CorpusSource(index_of(tmp_path / "more", DOCUMENTS[:2]))
    with pytest.raises(CorpusError, match="of other documents"):
        HybridSource(other, dense=dense, encoder=encoder)
    with pytest.raises(ValueError, match="needs an index and an encoder"):
        HybridSource(corpus, words=False)


class LongestFirst:
    """A cross-encoder that likes long passages."""

    num_labels = 1

    def __init__(self) -> None:
        self.pairs: list[Pair] = []

    def predict(self, pairs: list[Pair], **_: object) -> list[float]:
        self.pairs += pairs
        return [float(len(text)) for _, text in pairs]


def test_a_cross_encoder_orders_the_first_passages_and_no_more(tmp_path: Path):
    documents = [{"id": f"w{n}", "title": "Water", "text": "water " + "and more " * n} for n in range(12)]
    corpus = CorpusSource(index_of(tmp_path, documents))
    model = LongestFirst()
    plain = ids(within(lambda: searched(corpus, "water", limit=12)).passages)
    source = HybridSource(corpus, reranker=Reranker(model, name="longest"), reranked=5)
    found = within(lambda: searched(source, "water", limit=12))
    first = sorted(plain[:5], key=lambda name: -int(name[1:]))
    assert ids(found.passages) == [*first, *plain[5:]]
    assert [p.rank for p in found.passages] == list(range(1, 13))
    assert {query for query, _ in model.pairs} == {"water"}
    assert found.backend == "bm25+rerank"


def test_a_short_list_is_cut_after_it_was_judged(tmp_path: Path):
    documents = [{"id": f"w{n}", "title": "Water", "text": "water " + "and more " * n} for n in range(12)]
    corpus = CorpusSource(index_of(tmp_path, documents))
    source = HybridSource(corpus, reranker=Reranker(LongestFirst(), name="longest"), reranked=12)
    assert ids(within(lambda: searched(source, "water", limit=2)).passages) == ["w11", "w10"]


@needs_model
def test_a_cross_encoder_is_loaded_from_its_folder(tmp_path: Path, folder: Path):
    reranker = Reranker.load(tiny_cross_encoder(tmp_path / "judge"))
    pairs = [("who made the movie", "Lina Orr"), ("who made the movie", "bread"), ("rain", "water from clouds")]
    scores = reranker.score(pairs)
    assert len(scores) == 3
    assert scores == pytest.approx([reranker.score([pair])[0] for pair in pairs], abs=1e-2)
    assert reranker.score([]) == []
    found = within(lambda: searched(open_corpus(folder, rerank=tmp_path / "judge"), "who made the movie"))
    assert sorted(ids(found.passages)) == ["bread", "code", "film", "rain"]
    assert found.backend == "bm25+dense+rerank"


@needs_model
def test_a_cross_encoder_with_several_scores_is_refused(tmp_path: Path):
    from agent.errors import SetupError

    with pytest.raises(SetupError, match="gives 3 scores for a pair"):
        Reranker.load(tiny_cross_encoder(tmp_path / "classes", scores=3))


@needs_model
def test_an_encoder_that_is_loaded_already_builds_the_index(tmp_path: Path):
    encoder = Encoder.load(MINILM)
    folder = index_of(tmp_path, DOCUMENTS, Dense(model=MINILM, encoder=encoder))
    corpus = CorpusSource(folder)
    assert corpus.card.dense is not None
    assert corpus.card.dense.fingerprint == encoder.fingerprint
    assert DenseIndex(corpus.data / DENSE).card.encoded == 4
