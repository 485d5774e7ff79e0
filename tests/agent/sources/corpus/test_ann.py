"""Every kind of index: what it finds, what its card would say, what it reads, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from agent.errors import CorpusError, SetupError
from agent.sources.corpus import ann
from agent.sources.corpus.ann import FILE, Ann, AnnShape, Kind, kind_for, recall, shape_for, tuned
from agent.sources.corpus.vectors import VECTORS
from tests.agent.sources.corpus.encoding import clustered, needs_faiss

pytestmark = needs_faiss
KINDS: tuple[Kind, ...] = ("flat", "hnsw", "ivf-sq8", "ivf-pq")
ROWS = 4000
DIM = 32


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    return clustered(ROWS, DIM)


@pytest.fixture(scope="module")
def queries() -> NDArray[np.float32]:
    return clustered(50, DIM, seed=1)


@pytest.fixture(scope="module")
def indexes(vectors: NDArray[np.float32]) -> dict[Kind, Ann]:
    """One of each kind."""
    return {kind: Ann.build(vectors, shape_for(kind, ROWS, DIM)) for kind in KINDS}


def with_effort(index: Ann, effort: int) -> Ann:
    return Ann(index.index, index.vectors, index.shape.model_copy(update={"effort": effort}))


def exactly(vectors: NDArray[np.float32], queries: NDArray[np.float32], cut: int) -> list[set[int]]:
    """The nearest rows, found without faiss."""
    order = np.argsort(-(queries @ vectors.T), axis=1)[:, :cut]
    return [set(row) for row in order.tolist()]


def measured(found: NDArray[np.int64], exact: list[set[int]]) -> float:
    return sum(len(set(row) & wanted) for row, wanted in zip(found.tolist(), exact, strict=True)) / sum(map(len, exact))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_and_opened_finds_the_same_with_the_recall_that_was_reported(
    kind: Kind,
    indexes: dict[Kind, Ann],
    vectors: NDArray[np.float32],
    queries: NDArray[np.float32],
    tmp_path: Path,
):
    built, recall = tuned(indexes[kind], queries)
    np.save(tmp_path / VECTORS, vectors)
    built.save(tmp_path)
    opened = Ann.open(tmp_path, built.shape)
    scores, rows = opened.search(queries, 10)
    assert np.array_equal(rows, built.search(queries, 10)[1])
    assert measured(rows, exactly(vectors, queries, 10)) == pytest.approx(recall, abs=0.002)
    assert recall >= 0.9
    assert rows.shape == scores.shape == (50, 10)
    assert (np.diff(scores, axis=1) <= 1e-6).all(), "best first"


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf-pq"])
def test_scores_are_inner_products(
    kind: Kind, indexes: dict[Kind, Ann], vectors: NDArray[np.float32], queries: NDArray[np.float32]
):
    scores, rows = indexes[kind].search(queries, 5)
    for query, near, by in zip(queries, rows, scores, strict=True):
        assert by == pytest.approx(vectors[near] @ query, abs=1e-5)


def test_rescoring_makes_good_what_product_quantization_loses(
    indexes: dict[Kind, Ann], vectors: NDArray[np.float32], queries: NDArray[np.float32]
):
    built = with_effort(indexes["ivf-pq"], 64)
    coarse = Ann(built.index, vectors, built.shape.model_copy(update={"rescored": 1}))
    assert recall(coarse, queries) < 0.8
    assert recall(built, queries) > recall(coarse, queries) + 0.15


def test_the_effort_is_raised_until_the_recall_is_good(indexes: dict[Kind, Ann], queries: NDArray[np.float32]):
    lazy = with_effort(indexes["ivf-sq8"], 1)
    better, found = tuned(lazy, queries)
    assert recall(lazy, queries) < ann.GOOD_RECALL <= found
    assert better.shape.effort > 1
    assert recall(better, queries) == found


def test_vectors_and_index_are_mapped_not_read(
    indexes: dict[Kind, Ann], vectors: NDArray[np.float32], queries: NDArray[np.float32], tmp_path: Path
):
    np.save(tmp_path / VECTORS, vectors)
    for kind, built in indexes.items():
        built.save(tmp_path)
        opened = Ann.open(tmp_path, built.shape)
        assert isinstance(opened.vectors, np.memmap)
        opened.search(queries, 1)
        maps = Path("/proc/self/maps")
        if maps.exists():
            assert str(tmp_path / VECTORS) in maps.read_text(encoding="utf-8")
            assert kind == "flat" or str(tmp_path / FILE) in maps.read_text(encoding="utf-8")
        assert kind == "flat" or (tmp_path / FILE).exists()
        (tmp_path / FILE).unlink(missing_ok=True)


def test_more_than_there_is_gives_what_there_is(vectors: NDArray[np.float32]):
    few = vectors[:7]
    for kind in ("flat", "hnsw"):
        assert set(Ann.build(few, shape_for(kind, 7, DIM)).search(few[:1], 100)[1][0].tolist()) == set(range(7))
    assert Ann.build(few, shape_for("flat", 7, DIM)).search(few[:0], 5)[1].shape == (0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_who_asks_for_all_rows_gets_them(kind: Kind, indexes: dict[Kind, Ann], queries: NDArray[np.float32]):
    """As a filter does that few passages meet."""
    _, rows = with_effort(indexes[kind], 1).search(queries[:3], ROWS)
    assert [len(set(row) - {-1}) for row in rows.tolist()] == [ROWS] * 3


def test_a_cell_with_too_few_rows_leaves_places_empty(vectors: NDArray[np.float32], queries: NDArray[np.float32]):
    built = Ann.build(vectors, AnnShape(kind="ivf-sq8", effort=1, cells=100))
    scores, rows = built.search(queries, 60)
    assert (rows == -1).any()
    assert np.isneginf(scores[rows == -1]).all()
    assert np.isfinite(scores[rows >= 0]).all()


def test_too_few_passages_for_an_inverted_file_is_said():
    with pytest.raises(SetupError, match="at least 256 passages, there are 100; choose flat or hnsw"):
        shape_for("ivf-pq", 100, DIM)


@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_a_damaged_index_is_refused(
    damage: str, indexes: dict[Kind, Ann], vectors: NDArray[np.float32], tmp_path: Path
):
    np.save(tmp_path / VECTORS, vectors[:3000] if damage == "other" else vectors)
    built = indexes["hnsw"]
    built.save(tmp_path)
    if damage == "missing":
        (tmp_path / FILE).unlink()
    if damage == "cut":
        (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:100])
    with pytest.raises(CorpusError, match="build it again"):
        Ann.open(tmp_path, built.shape)


def test_the_kind_follows_the_size():
    sizes = (10, 100_000, 5_000_000, 50_000_000)
    assert tuple(kind_for(rows) for rows in sizes) == KINDS
    assert shape_for("flat", 10, DIM) == AnnShape(kind="flat")
