"""Any bytes of an index may be a stranger's: opening it and searching gives passages or an error, within bounds."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from agent.sources.corpus.source import build_index

ROUNDS = 200
TRY = """
import json, random, resource, shutil, sys
from pathlib import Path
from agent.errors import CorpusError
from agent.sources.corpus.source import CorpusSource

here, rounds = Path(sys.argv[1]), int(sys.argv[2])
CorpusSource(here / "whole").find("owl heron", limit=5)  # what is imported late is there before the limit
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if sys.platform == "linux" else 0
if used:
    resource.setrlimit(resource.RLIMIT_AS, (used + (768 << 20),) * 2)
random = random.Random(0)
NUMBERS = [b"0", b"-1", b"2147483647", b"9223372036854775807", b"1e999", b"NaN", b"null", b'"x"', b"[[[[", b"{}"]


def mutated(raw):
    raw = bytearray(raw)
    at = random.randrange(len(raw) + 1)
    match random.randrange(6):
        case 0:
            raw[at:at + 1] = bytes([random.randrange(256)])
        case 1:
            raw[at:at + 8] = random.choice([b"\\xff" * 8, b"\\x7f" * 8, b"\\xff\\xff\\xff\\x7f" * 2, bytes(8)])
        case 2:
            del raw[at:]
        case 3:
            raw[at:at] = random.randbytes(64)
        case 4:
            digits = [i for i, c in enumerate(raw) if 48 <= c <= 57]
            if digits:
                place = random.choice(digits)
                raw[place:place + 1] = random.choice(NUMBERS)
        case 5:
            raw = bytearray(random.choice([b"", b"[" * 100_000, b"PK\\x03\\x04", b"\\x80\\x04N.", bytes(4096)]))
    return bytes(raw)


opened = refused = 0
for turn in range(rounds):
    folder = here / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(here / "whole", folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = random.choice(files)
    for _ in range(random.randrange(1, 4)):
        path.write_bytes(mutated(path.read_bytes()))
    card = folder / "index.json"
    if path != card and random.random() < 0.9:  # the card says the new size, as an attacker's would
        stated = json.loads(card.read_bytes())
        stated["files"][path.relative_to(folder / stated["data"]).as_posix()] = path.stat().st_size
        card.write_text(json.dumps(stated))
    try:
        source = CorpusSource(folder)
        for query in ("owl heron", "number 7", "the"):
            source.find(query, limit=5)
        list(source.documents())
        opened += 1
    except CorpusError:
        refused += 1
    except BaseException as error:
        raise SystemExit(f"turn {turn}, {path.name}: {type(error).__name__}: {error}") from error
print(json.dumps({"opened": opened, "refused": refused}))
"""


TRY_ANN = """
import random, resource, sys
from pathlib import Path
import numpy as np
from agent.errors import CorpusError
from agent.sources.corpus.ann import FILE, Ann, shape_for

here, kind, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
vectors = np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32)
np.save(here / "vectors.npy", vectors)
shape = shape_for(kind, 300, 16)
Ann.build(vectors, shape).save(here)
raw, random = (here / FILE).read_bytes(), random.Random(0)
NUMBERS = [-1, 0, 299, 300, 65_536, 2**30, 2**31 - 1]
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if sys.platform == "linux" else 0
if used:
    resource.setrlimit(resource.RLIMIT_AS, (used + (768 << 20),) * 2)
refused = 0
for turn in range(rounds):
    changed = bytearray(raw)
    for _ in range(random.randrange(1, 5)):
        at = random.randrange(random.choice([200, len(raw)]))
        changed[at:at + 4] = random.choice(NUMBERS).to_bytes(4, "little", signed=True)
    (here / FILE).unlink()  # the one of the turn before may still be mapped
    (here / FILE).write_bytes(changed)
    try:
        ann = Ann.open(here, shape)
        ann.use_threads(1)
        ann.search(vectors[:10], 5)
    except CorpusError:
        refused += 1
print(refused)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    rows = ({"id": f"d{n}", "title": "Birds", "text": f"owl and heron number {n}", "date": "2026"} for n in range(40))
    (folder / "docs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    build_index([folder / "docs.jsonl"], folder / "whole")
    return folder


def test_a_changed_index_gives_passages_or_an_error(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "whole", tmp_path / "whole")
    command = [sys.executable, "-P", "-c", TRY, str(tmp_path), str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    stated = json.loads(done.stdout)
    assert stated["opened"] + stated["refused"] == ROUNDS
    assert stated["refused"] > ROUNDS / 4, "most changes can be seen"


def test_changed_vectors_are_refused_and_never_unpickled(tmp_path: Path) -> None:
    from agent.errors import CorpusError
    from agent.sources.corpus.vectors import exact_vectors, row_keys

    np.save(tmp_path / "vectors.npy", np.ones((4, 8), np.float32))
    np.save(tmp_path / "keys.npy", np.ones((4, 16), np.uint8))
    assert exact_vectors(tmp_path).shape == (4, 8)
    assert len(row_keys(tmp_path)) == 4
    for name, read in (("vectors.npy", exact_vectors), ("keys.npy", row_keys)):
        raw = (tmp_path / name).read_bytes()
        for change in (raw[:-1], raw + b"x", b"", b"PK\x03\x04" + raw, raw.replace(b"(4,", b"(9,")):
            (tmp_path / name).write_bytes(change)
            with pytest.raises(CorpusError, match="build it again"):
                read(tmp_path)
        np.save(tmp_path / name, np.array([{"a": 1}], object), allow_pickle=True)
        with pytest.raises(CorpusError, match="build it again"):
            read(tmp_path)


@pytest.mark.parametrize("kind", ["hnsw", "ivf-sq8"])
def test_a_changed_index_of_vectors_gives_rows_or_an_error(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("faiss")
    command = [sys.executable, "-P", "-c", TRY_ANN, str(tmp_path), kind, "100"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert 10 < int(done.stdout) <= 100
