"""Finding 15: links in an index folder that a stranger made lead a build, or a search, to files outside it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.attacks.product import Product

OUTSIDE = "a file of the user's own\n"


@pytest.fixture
def strange(product: Product, tmp_path: Path) -> Path:
    """A folder with documents, their index, and a folder `mine` that is none of the index's business."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("An owl hunts.", encoding="utf-8")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text(OUTSIDE, encoding="utf-8")
    done = product.run("index", "build", "docs", "--out", "index", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "docs" / "b.txt").write_text("A heron waits.", encoding="utf-8")
    return tmp_path


def untouched(folder: Path) -> bool:
    held = {path.name: path.read_text(encoding="utf-8") for path in (folder / "mine").iterdir()}
    return held == {"thesis.txt": OUTSIDE}


@pytest.mark.parametrize("name", [".index.json", ".lock", "documents.jsonl", "offsets.npy"])
def test_building_again_writes_through_no_link(product: Product, strange: Path, name: str) -> None:
    (strange / "index" / name).symlink_to(strange / "mine" / "thesis.txt")
    done = product.run("index", "build", "docs", "--out", "index", cwd=strange)
    assert done.returncode == 0, done.stderr
    assert untouched(strange)
    ours = name.startswith(".")  # what the first version wrote is the user's own file in an index of the second
    assert (strange / "index" / name).is_symlink() is not ours, "the link itself goes"


@pytest.mark.parametrize("name", ["bm25", ".vectors", "data-00000000", ".building-0"])
def test_building_again_removes_nothing_behind_a_link(product: Product, strange: Path, name: str) -> None:
    (strange / "index" / name).symlink_to(strange / "mine", target_is_directory=True)
    done = product.run("index", "build", "docs", "--out", "index", cwd=strange)
    assert done.returncode == 0, done.stderr
    assert untouched(strange)


@pytest.mark.parametrize("link", ["folder", "files"])
def test_a_log_of_vectors_is_written_and_cleared_inside_the_index_alone(
    product: Product, strange: Path, link: str
) -> None:
    log = strange / "index" / ".vectors"
    if link == "folder":
        log.symlink_to(strange / "mine", target_is_directory=True)
    else:
        log.mkdir()
        (log / "m-4.keys").symlink_to(strange / "mine" / "thesis.txt")
        (log / "m-4.vectors").hardlink_to(strange / "mine" / "thesis.txt")
    code = (
        "import numpy, pathlib, agent.sources.corpus.vectors as v\n"
        f"with v.VectorLog(pathlib.Path({str(log)!r}), model='m', dim=4) as log:\n"
        "    log.add([b'k' * 16], numpy.ones((1, 4), 'float32'))\n"
    )
    command = [str(product.python), "-P", "-c", code]
    done = subprocess.run(command, env=product.environment, cwd=strange, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert untouched(strange)


@pytest.mark.parametrize("part", ["documents.jsonl", "bm25", ""])
def test_a_search_reads_through_no_link(product: Product, strange: Path, part: str) -> None:
    """What lies behind the link fits in every byte: only the link itself can be seen."""
    data = strange / "index" / json.loads((strange / "index" / "index.json").read_bytes())["data"]
    place = data / part if part else data
    shutil.move(place, strange / "elsewhere")
    place.symlink_to(strange / "elsewhere")
    done = product.run("index", "search", "index", "owl", cwd=strange)
    assert done.returncode != 0
    assert "An owl hunts" not in done.stdout
    assert "is damaged" in done.stderr
    assert "build it with: cairn index build" in done.stderr


@pytest.mark.parametrize(
    "change", [{"data": "../elsewhere"}, {"data": "/tmp"}, {"files": {"../../mine/thesis.txt": 25}}]
)
def test_a_card_that_names_what_lies_outside_is_refused(
    product: Product, strange: Path, change: dict[str, object]
) -> None:
    card = strange / "index" / "index.json"
    card.write_text(json.dumps(json.loads(card.read_bytes()) | change), encoding="utf-8")
    done = product.run("index", "search", "index", "owl", cwd=strange)
    assert done.returncode != 0
    assert "index.json cannot be read; build it with" in done.stderr
    assert product.run("index", "build", "docs", "--out", "index", cwd=strange).returncode == 0
    assert untouched(strange)
