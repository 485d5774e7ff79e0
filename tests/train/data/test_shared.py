"""Steps that other processes share, with a model and with UMAP: the same clusters, in whichever process."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.parallel.spread import HERE, On, Spread
from tests.agent.sources.corpus.encoding import needs_faiss, tiny_encoder
from train.data.bundling import grounds
from train.data.folder import Array, Folder
from train.data.inputs import WorldInput
from train.data.recipe import DataRecipe
from train.data.records import Bundle, Doc
from train.data.steps import Steps
from train.data.vectors import embedded, embedder

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
