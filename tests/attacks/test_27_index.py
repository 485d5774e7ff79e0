"""Finding 27, the index's half: numbers in the BM25 index of a stranger that claim all the memory there is."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.attacks.product import Product


@pytest.fixture
def index(product: Product, tmp_path: Path) -> Path:
    """The data folder of an index."""
    (tmp_path / "docs.jsonl").write_text(
        "".join(json.dumps({"id": f"d{n}", "text": f"owl number {n}"}) + "\n" for n in range(20)), encoding="utf-8"
    )
    done = product.run("index", "build", "docs.jsonl", "--out", "index", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path / "index" / json.loads((tmp_path / "index" / "index.json").read_bytes())["data"]


def searched(product: Product, folder: Path) -> str:
    """What a search that fails says."""
    done = product.run("index", "search", "index", "owl", cwd=folder, seconds=20)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("row", [2**31 - 1, 20, -1])
def test_a_row_that_is_not_there_is_an_error(product: Product, index: Path, row: int) -> None:
    path = index / "bm25" / "indices.csc.index.npy"
    np.save(path, np.full_like(np.load(path), row))
    assert "names passages that are not there; build it again" in searched(product, index.parent.parent)


@pytest.mark.parametrize("shape", ["(999999999999,)", "(-1,)", "(2, 10)", "()"])
def test_an_array_that_claims_another_shape_is_an_error(product: Product, index: Path, shape: str) -> None:
    path = index / "bm25" / "data.csc.index.npy"
    raw = path.read_bytes()
    start, end = raw.index(b"'shape': "), raw.index(b"}", 10)
    header = f"'shape': {shape}, ".encode()
    path.write_bytes((raw[:start] + header).ljust(end) + raw[end:] if len(header) <= end - start else raw[:40])
    assert "build it" in searched(product, index.parent.parent)


def test_offsets_that_lead_anywhere_are_an_error(product: Product, index: Path) -> None:
    path = index / "offsets.npy"
    offsets = np.load(path)
    offsets[1:-1] = 2**62
    np.save(path, offsets)
    assert "build it again" in searched(product, index.parent.parent)
