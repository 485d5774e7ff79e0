"""Finding 33: a link or a pipe in the folder of a stored run led what Cairn writes there to any file, or for ever."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.attacks.product import Product

OUTSIDE = "a file of the user's own\n"


@pytest.fixture(scope="module")
def ended(installed: Product, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation that ended, and its report."""
    folder = tmp_path_factory.mktemp("ended")
    row = {"id": "q1", "question": "Where was Persen Golney born?", "answers": ["a"]}
    (folder / "questions.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = installed.run("eval", "--questions", "questions.jsonl", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def stored(ended: Path, tmp_path: Path) -> Path:
    """A copy of it, beside a file that is none of the run's business."""
    shutil.copytree(ended, tmp_path, dirs_exist_ok=True)
    (tmp_path / "thesis.txt").write_text(OUTSIDE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("kind", ["link", "pipe"])
@pytest.mark.parametrize("name", ["results.jsonl", "traces.jsonl", "run.json", "report.md", "report.html"])
@pytest.mark.parametrize("command", ["eval", "eval-report"])
def test_a_stored_run_leads_nowhere_else(product: Product, stored: Path, command: str, name: str, kind: str) -> None:
    there = stored / "run" / name
    there.unlink(missing_ok=True)
    if kind == "link":
        there.symlink_to(stored / "thesis.txt")
    else:
        os.mkfifo(there)
    arguments = (
        ["eval", "--questions", "questions.jsonl", "--out", "run"] if command == "eval" else ["eval-report", "run"]
    )
    done = product.run(*arguments, cwd=stored, seconds=30)
    assert (stored / "thesis.txt").read_text(encoding="utf-8") == OUTSIDE
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    assert done.returncode == 0 or name in done.stderr or "run" in done.stderr


def test_a_new_run_is_not_begun_through_a_link(product: Product, stored: Path) -> None:
    (stored / "new").mkdir()
    (stored / "new" / "run.tmp").symlink_to(stored / "thesis.txt")
    done = product.run("eval", "--questions", "questions.jsonl", "--out", "new", cwd=stored)
    assert (done.returncode != 0, "symbolic link" in done.stderr) == (True, True), done.stderr
    assert (stored / "thesis.txt").read_text(encoding="utf-8") == OUTSIDE
