import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import time_ns
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agent.errors import CorpusError, SetupError
from agent.sources.corpus.build import Dense, Outcome
from agent.sources.corpus.folder import locked, read_entries
from agent.sources.corpus.source import CorpusSource, build_index, read_card, update_index
from tests.agent.sources.extract.files import make_pdf

ROOT = Path(__file__).parents[4]
LONG_AGO = time_ns() - 10**12


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with files of several kinds, all of them written long ago; none that needs a process to be read."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in {"a.md": "# Falcons\nThe falcon dives.", "b.txt": "An owl hunts.", "d.txt": "The sea."}.items():
        put(folder / name, text)
    put(folder / "c.md", "# Herons\nThe heron waits for a fish.")
    put(folder / "e.jsonl", '{"id": "x", "title": "Swans", "text": "Two swans."}\n{"id": "y", "text": "A duck."}\n')
    return folder


def put(path: Path, text: str | bytes, when: int = LONG_AGO) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, ns=(when, when))
    return path


def found(index: Path, query: str) -> list[tuple[str, str, float]]:
    return [(p.id, p.text, p.score) for p in CorpusSource(index).find(query, limit=10)]


def counts(outcome: Outcome) -> tuple[int, int, int, int]:
    return outcome.new, outcome.changed, outcome.removed, outcome.kept


def data_files(index: Path) -> dict[str, bytes]:
    folder = index / read_card(index).data
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_same_documents_give_the_same_index(notes: Path, tmp_path: Path):
    cards = [build_index([notes], tmp_path / name) for name in ("one", "two")]
    assert cards[0].sha256 == cards[1].sha256
    one, two = data_files(tmp_path / "one"), data_files(tmp_path / "two")
    assert {name for name in one if one[name] != two[name]} <= {"files.jsonl"}, "which holds when files were read"


def test_nothing_is_written_where_nothing_changed(notes: Path, tmp_path: Path):
    put(notes / "f.html", "<title>Cranes</title><p>A crane dances.</p>")
    first = update_index([notes], tmp_path / "i")
    assert counts(first) == (6, 0, 0, 0)
    again = update_index([notes], tmp_path / "i")
    assert (counts(again), again.card) == ((0, 0, 0, 6), first.card)


def change(folder: Path) -> None:
    put(folder / "b.txt", "A barn owl hunts mice.")


def change_without_a_trace(folder: Path) -> None:
    """Of the same length, and the time says nothing: it was just read and just written."""
    state = (folder / "b.txt").stat()
    put(folder / "b.txt", "An elk hunts.", state.st_mtime_ns)


def touch(folder: Path) -> None:
    os.utime(folder / "b.txt")


def remove(folder: Path) -> None:
    (folder / "b.txt").unlink()


def add_before(folder: Path) -> None:
    put(folder / "a.html", "<p>Cranes and a falcon dance.</p>")


def swap(folder: Path) -> None:
    """Two files change their contents."""
    owl = (folder / "b.txt").read_bytes()
    put(folder / "b.txt", (folder / "d.txt").read_bytes(), LONG_AGO + 1)
    put(folder / "d.txt", owl, LONG_AGO + 1)


def all_at_once(folder: Path) -> None:
    change(folder)
    add_before(folder)
    (folder / "c.md").unlink()


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (change, (0, 1, 0, 4)),
        (touch, (0, 0, 0, 5)),
        (remove, (0, 0, 1, 4)),
        (add_before, (1, 0, 0, 5)),
        (swap, (0, 2, 0, 3)),
        (all_at_once, (1, 1, 1, 3)),
    ],
)
def test_a_changed_folder_gives_the_index_that_a_full_build_gives(
    notes: Path, tmp_path: Path, edit: Callable[[Path], None], expected: tuple[int, int, int, int]
):
    build_index([notes], tmp_path / "i")
    edit(notes)
    outcome = update_index([notes], tmp_path / "i")
    assert counts(outcome) == expected
    full = build_index([notes], tmp_path / "full")
    assert outcome.card.sha256 == full.sha256
    assert outcome.card.model_dump(exclude={"data", "files"}) == full.model_dump(exclude={"data", "files"})
    for query in ("falcon", "owl", "the sea", "a duck", "barn mice", "dance"):
        assert found(tmp_path / "i", query) == found(tmp_path / "full", query)


def test_a_change_right_after_the_reading_is_seen(notes: Path, tmp_path: Path):
    put(notes / "b.txt", "An owl hunts.", time_ns())
    build_index([notes], tmp_path / "i")
    change_without_a_trace(notes)
    assert counts(update_index([notes], tmp_path / "i")) == (0, 1, 0, 4)


def test_another_file_of_the_same_name_size_and_time_is_no_known_one(notes: Path, tmp_path: Path):
    build_index([notes], tmp_path / "i")
    shutil.copytree(notes, tmp_path / "other")
    put(tmp_path / "other" / "b.txt", "An elk hunts.")
    assert counts(update_index([tmp_path / "other"], tmp_path / "i")) == (0, 1, 0, 4)


def test_an_index_that_was_read_by_other_rules_is_read_again(notes: Path, tmp_path: Path):
    card = build_index([notes], tmp_path / "i")
    older = card.model_copy(update={"reading": card.reading - 1})
    (tmp_path / "i" / "index.json").write_text(older.model_dump_json(), encoding="utf-8")
    assert update_index([notes], tmp_path / "i").card.reading == card.reading
    assert len(read_entries(tmp_path / "i", read_card(tmp_path / "i"))) == 5


def test_a_damaged_index_is_built_again_and_one_of_the_first_version_too(notes: Path, tmp_path: Path):
    card = build_index([notes], tmp_path / "i")
    (tmp_path / "i" / card.data / "documents.jsonl").unlink()
    assert counts(update_index([notes], tmp_path / "i")) == (5, 0, 0, 0)
    first = tmp_path / "first"
    (first / "bm25").mkdir(parents=True)
    for name, content in {"index.json": '{"version": 1, "documents": 2}', "documents.jsonl": "{}"}.items():
        put(first / name, content)
    assert counts(update_index([notes], first)) == (5, 0, 0, 0)
    assert sorted(p.name for p in first.iterdir()) == [read_card(first).data, "index.json"]


def test_files_that_cannot_be_read_are_reported_and_the_rest_is_indexed(notes: Path, tmp_path: Path):
    put(notes / "scan.pdf", make_pdf([]))
    put(notes / "broken.pdf", make_pdf(["One page."])[:300])
    put(notes / "picture.png", b"\x89PNG")
    put(notes / "blank.txt", " \n")
    put(notes / "none.jsonl", "\n")
    outcome = update_index([notes], tmp_path / "i")
    for again in (outcome, update_index([notes], tmp_path / "i")):  # one that did not change is not tried again
        assert {skip.name: (skip.reason, skip.why.split(":")[0]) for skip in again.skipped} == {
            "picture.png": ("kind", ".png"),
            "blank.txt": ("unreadable", "it is empty"),
            "none.jsonl": ("unreadable", "it is empty"),
            "broken.pdf": ("unreadable", "it is not a readable PDF"),
            "scan.pdf": ("unreadable", "none of its pages holds text"),
        }
    assert (outcome.new, again.kept, again.card.sources) == (5, 5, 5)
    assert found(tmp_path / "i", "heron")


def test_a_strict_build_stops_at_a_file_that_cannot_be_read(notes: Path, tmp_path: Path):
    build_index([notes], tmp_path / "i")
    put(notes / "scan.pdf", make_pdf([]))
    with pytest.raises(CorpusError, match=r"scan\.pdf cannot be read: none of its pages holds text"):
        build_index([notes], tmp_path / "i", strict=True)
    assert CorpusSource(tmp_path / "i").card.sources == 5
    build_index([notes], tmp_path / "i")
    with pytest.raises(CorpusError, match=r"scan\.pdf cannot be read"):
        build_index([notes], tmp_path / "i", strict=True)


def test_a_file_that_goes_away_while_an_index_is_built_is_reported(notes: Path, tmp_path: Path):
    build_index([notes], tmp_path / "i")
    put(notes / "a.txt", "first of all", time_ns())

    def remove_the_sea(stage: str, done: int, total: int) -> None:
        (notes / "d.txt").unlink(missing_ok=True)
        (notes / "e.jsonl").unlink(missing_ok=True)

    outcome = update_index([notes], tmp_path / "new", progress=remove_the_sea)
    assert {skip.name: skip.why for skip in outcome.skipped} == {
        "d.txt": "it cannot be opened: No such file or directory",
        "e.jsonl": "it cannot be opened: No such file or directory",
    }


def test_a_model_that_cannot_be_loaded_is_reported_before_anything_is_read(notes: Path, tmp_path: Path):
    pytest.importorskip("sentence_transformers")
    stages: list[str] = []
    with pytest.raises(SetupError, match="there is no model folder"):
        build_index([notes], tmp_path / "i", dense=Dense("./gone"), progress=lambda stage, _, of: stages.append(stage))
    assert (stages, (tmp_path / "i").exists()) == ([], False)


def test_progress_comes_to_its_end_in_each_stage(notes: Path, tmp_path: Path):
    seen: dict[str, list[tuple[int, int]]] = {}
    build_index([notes], tmp_path / "i", progress=lambda stage, done, of: seen.setdefault(stage, []).append((done, of)))
    size = sum(path.stat().st_size for path in notes.iterdir())
    assert {stage: steps[-1] for stage, steps in seen.items()} == {
        "reading": (size, size),
        "indexing": (6, 6),
        "writing": (1, 1),
    }
    assert all(steps == sorted(steps) for steps in seen.values())


def test_an_index_inside_its_own_documents_is_not_read(notes: Path):
    for _ in range(2):
        assert build_index([notes], notes / "index").documents == 6


def test_a_second_build_of_the_same_index_refuses(notes: Path, tmp_path: Path):
    with locked(tmp_path / "i"), pytest.raises(CorpusError, match="another build is writing"):
        build_index([notes], tmp_path / "i")
    assert build_index([notes], tmp_path / "i").documents == 6


BUILD = """
import sys
from pathlib import Path
from agent.sources.corpus.source import build_index

def report(stage, done, total):
    print(stage, flush=True)

build_index([Path(sys.argv[1])], Path(sys.argv[2]), progress=report)
"""


def start_build(documents: Path, index: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", BUILD, str(documents), str(index)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("steps", "older"), [(1, True), (90, False), (306, True), (310, True), (310, False)])
def test_a_killed_build_leaves_the_older_index_or_none_and_the_next_one_works(
    notes: Path, tmp_path: Path, steps: int, older: bool
):
    """It reports its steps: one for each line and file, then four while indexing, then two around the replacement."""
    index = tmp_path / "i"
    if older:
        build_index([notes], index)
    rows = ({"id": f"r{n}", "text": f"falcon number {n} of many"} for n in range(300))
    put(notes / "many.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with start_build(notes, index) as build:
        assert build.stdout is not None
        lines = [line for line, _ in zip(build.stdout, range(steps), strict=False)]
        build.kill()
    assert len(lines) == steps
    if older:
        assert CorpusSource(index).card.documents in (6, 306)
    elif (index / "index.json").exists():
        assert CorpusSource(index).card.documents == 306
    assert update_index([notes], index).card.documents == 306
    assert sorted(p.name for p in index.iterdir()) == [read_card(index).data, "index.json"]


def test_readers_find_an_index_at_every_moment_of_many_builds(notes: Path, tmp_path: Path):
    index = tmp_path / "i"
    build_index([notes], index)
    opened = 0
    command = [sys.executable, "-c", MANY, str(notes), str(index)]
    with subprocess.Popen(command) as builds:
        while builds.poll() is None:
            assert CorpusSource(index).find("falcon", limit=1)
            opened += 1
    assert builds.returncode == 0
    assert opened > 8


MANY = """
import sys
from pathlib import Path
from agent.sources.corpus.source import build_index

notes, index = map(Path, sys.argv[1:])
for turn in range(30):
    (notes / "b.txt").write_text(f"turn {turn}", encoding="utf-8")
    build_index([notes], index)
"""


class Letters:
    """An encoder that kills its process after some calls."""

    name = fingerprint = "letters"
    query_prefix = passage_prefix = ""
    dtype, dim = "float32", 26

    def __init__(self, calls: int) -> None:
        self._left = calls

    def encode_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        self._left -= 1
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        found = np.array([[text.count(chr(97 + at)) for at in range(26)] for text in passages], np.float32)
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)

    encode_queries = encode_passages


def build_dense(documents: Path, index: Path, *, calls: int) -> int:
    """How many passages were encoded."""
    encoder: Any = Letters(calls)  # all that a build uses of one
    card = build_index([documents], index, dense=Dense("letters", "flat", encoder))
    assert card.dense is not None
    return card.dense.encoded


KILLED = """
import sys
from pathlib import Path
from tests.agent.sources.corpus.test_build import build_dense

build_dense(Path(sys.argv[1]), Path(sys.argv[2]), calls=2)
"""


def test_a_killed_dense_build_goes_on_where_it_was(notes: Path, tmp_path: Path):
    pytest.importorskip("faiss")
    rows = ({"id": f"r{n}", "text": f"passage number {n}"} for n in range(2000))
    put(notes / "many.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-c", KILLED, str(notes), str(tmp_path / "i")]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -9
    assert not (tmp_path / "i" / "index.json").exists()
    assert build_dense(notes, tmp_path / "i", calls=99) == 2006 - 2 * 512
    put(notes / "new.txt", "One more.")
    (notes / "d.txt").unlink()
    assert build_dense(notes, tmp_path / "i", calls=2) == 1
    build_dense(notes, tmp_path / "full", calls=99)
    kept, full = data_files(tmp_path / "i"), data_files(tmp_path / "full")
    assert kept["dense/vectors.npy"] == full["dense/vectors.npy"]
    assert sorted(p.name for p in (tmp_path / "i").iterdir()) == [read_card(tmp_path / "i").data, "index.json"]
