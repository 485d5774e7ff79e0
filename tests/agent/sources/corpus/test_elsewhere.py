"""An index is the same, wherever its words are found and its vectors made."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import CorpusError
from agent.evidence import Passage
from agent.parallel.spread import Spread
from agent.sources.base import SearchRequest, close_sources
from agent.sources.bm25 import Bm25Index, batched, stems_of
from agent.sources.corpus.build import Dense, Outcome, update_index
from agent.sources.corpus.dense import DENSE
from agent.sources.corpus.elsewhere import EncoderModel, Texts, encode
from agent.sources.corpus.encoder import Encoder
from agent.sources.corpus.folder import OFFSETS, RECORDS
from agent.sources.corpus.hybrid import Mode, open_corpus
from agent.sources.corpus.vectors import exact_vectors
from agent.world import load_world
from tests.agent.sources.corpus.encoding import needs_faiss, tiny_encoder

MODES: tuple[Mode, ...] = ("bm25", "dense")
texts_of = st.lists(st.sampled_from(["a red falcon", "falcons fly", "", "the 7 seas", "鷹 red", "red red"]), min_size=1)


@given(texts_of, st.integers(1, 4))
def test_words_that_were_found_in_chunks_make_the_very_same_index(texts: list[str], size: int):
    whole, chunked = Bm25Index.build(texts), Bm25Index.of(map(stems_of, batched(texts, size)))
    for query in ("falcon", "red seas", "鷹", "nothing of it"):
        assert whole.search(query, 5) == chunked.search(query, 5)


def write_world(path: Path) -> list[str]:
    """Documents of the little world, some of them twice under another id; gives some of its questions."""
    world = load_world("test-v1")
    some = world.documents[:200]
    documents = [*some, *(d.model_copy(update={"id": f"again-{d.id}"}) for d in some[:40])]
    lines = (d.model_dump_json(include={"id", "title", "text"}) for d in documents)
    path.write_text("\n".join(lines), encoding="utf-8")
    return [question.question for question in world.questions[:12]]


def build(folder: Path, name: str, spread: Spread | None) -> Outcome:
    dense = Dense(str(folder / "model"), ann="flat")
    return update_index([folder / "world.jsonl"], folder / name, dense=dense, spread=spread)


def find(index: Path, mode: Mode, questions: list[str]) -> list[list[Passage]]:
    async def search() -> list[list[Passage]]:
        source = open_corpus(index, mode=mode)
        try:
            return [list((await source.search(SearchRequest(question, limit=5))).passages) for question in questions]
        finally:
            await close_sources([source])

    return asyncio.run(search())


@pytest.fixture(
    params=["processes", pytest.param("ray", marks=[pytest.mark.filterwarnings("ignore"), pytest.mark.long])]
)
def others(request: pytest.FixtureRequest) -> Iterator[Spread]:
    with Spread(workers=2, on="ray" if request.param == "ray" else "local") as spread:
        yield spread


@pytest.mark.slow
@needs_faiss
@pytest.mark.timeout(300)
def test_an_index_that_others_built_finds_the_same_by_words_and_by_meaning(tmp_path: Path, others: Spread):
    questions = write_world(tmp_path / "world.jsonl")
    tiny_encoder(tmp_path / "model")
    here, there = build(tmp_path, "here", None), build(tmp_path, "there", others)
    folders = [tmp_path / name / outcome.card.data for name, outcome in (("here", here), ("there", there))]
    for name in (RECORDS, OFFSETS):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    vectors = [exact_vectors(folder / DENSE) for folder in folders]
    assert vectors[0].shape == vectors[1].shape
    assert np.abs(vectors[0] - vectors[1]).max() < 1e-5
    assert here.card.dense is not None
    assert there.card.dense is not None
    assert here.card.dense.encoded == there.card.dense.encoded < here.card.documents
    for mode in MODES:
        by_us, by_them = (find(tmp_path / name, mode, questions) for name in ("here", "there"))
        assert [[hit.id for hit in hits] for hits in by_us] == [[hit.id for hit in hits] for hits in by_them]
        scores = [[hit.score for hits in found for hit in hits] for found in (by_us, by_them)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)


@needs_faiss
def test_a_worker_that_finds_another_model_says_so(tmp_path: Path):
    model = EncoderModel.of(Encoder.load(tiny_encoder(tmp_path / "model")))
    other = EncoderModel(model.name, model.query_prefix, model.passage_prefix, model.half, "another")
    assert encode(Texts(model, ["a falcon"])).shape[0] == 1
    with pytest.raises(CorpusError, match="give every machine the same one"):
        encode(Texts(other, ["a falcon"]))
