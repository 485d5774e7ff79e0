"""How fast indexes and data are built and questions evaluated, by one worker and by more, and what vector indexes cost.

Each build and each evaluation is the command itself, in a process of its own, its workers' start included.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agent.errors import SetupError
from agent.parallel.spread import On
from agent.sources.corpus.ann import FILE, Ann, Kind, recall, shape_for
from agent.sources.corpus.vectors import VECTORS

KINDS: Final[tuple[Kind, ...]] = ("flat", "hnsw", "ivf-sq8", "ivf-pq")
WAYS: Final[tuple[tuple[On, int], ...]] = (("local", 1), ("local", 2), ("ray", 1), ("ray", 2))
DIM: Final = 384
QUERIES: Final = 200
WORLD: Final = 2600
"""Documents of the little world that data is built from: two parts, which two workers can share."""
_MINUTES: Final = 20

Show = Callable[[str], object]


@dataclass(frozen=True)
class BuildingWay:
    """The same work, done by `workers` workers."""

    work: On
    workers: int
    passages: int
    words_s: float
    """Building the index by words alone."""
    dense_s: float
    """Building it with vectors, too."""
    bytes_words: int
    """Of the index by words: passages, BM25 and what is known of files."""
    bytes_dense: int
    questions: int
    eval_s: float
    documents: int
    """Of the little world."""
    data_s: float
    """Building questions from them, without a model."""


@dataclass(frozen=True)
class Nearest:
    """One kind of vector index over random vectors in clusters, which are harder to distinguish than those of texts."""

    kind: Kind
    vectors: int
    build_s: float
    bytes: int
    """Beside the vectors themselves."""
    query_ms: float
    """One query at a time."""
    recall_10: float


@dataclass(frozen=True)
class BuildingFigures:
    corpus: str
    model: str
    ways: tuple[BuildingWay, ...]
    nearest: tuple[Nearest, ...]


def measure(
    corpus: Path, *, model: str, questions: int, vectors: int, ways: Sequence[tuple[On, int]], show: Show
) -> BuildingFigures:
    """Build indexes and data, evaluate and search.

    Args:
        corpus: documents, as `cairn index build` takes them.
        model: a sentence-transformers model.
        questions: of the little world, for the embedded policy.
        vectors: of each kind of index.
        ways: where the work is done, and by how many workers.
        show: gets what goes on.

    Raises:
        SetupError: a command failed; the sentence holds what it said.
    """
    with TemporaryDirectory(prefix="cairn-bench-") as folder:
        world = f"{folder}/world"
        show("a little world")
        _command(["world", "build", "--seed", "7", "--size", str(WORLD), "--questions", "0", "--out", world, "--json"])
        done = tuple(_way(corpus, world, model, questions, work, workers, show) for work, workers in ways)
    return BuildingFigures(corpus.name, model, done, tuple(nearest(vectors, show)))


def _way(corpus: Path, world: str, model: str, questions: int, work: On, workers: int, show: Show) -> BuildingWay:
    where = ["--work", work, "--workers", str(workers), "--json"]
    with TemporaryDirectory(prefix="cairn-bench-") as folder:
        build = ["index", "build", str(corpus), "--out"]
        show(f"index by words, {work}, {workers}")
        words, words_s = _command([*build, f"{folder}/words", *where])
        show(f"index by meaning, {work}, {workers}")
        _, dense_s = _command([*build, f"{folder}/dense", "--dense", model, "--ann", "flat", *where])
        show(f"evaluation, {work}, {workers}")
        answered, eval_s = _command(["eval", "--world", "test-v2", "--limit", str(questions), *where])
        show(f"data, {work}, {workers}")
        data, data_s = _command(
            ["data", "build", "--world", world, "--embedder", "words", "--out", f"{folder}/data", *where]
        )
        sizes = [_bytes(Path(folder) / name) for name in ("words", "dense")]
    return BuildingWay(
        work=work,
        workers=workers,
        passages=words["documents"],
        words_s=words_s,
        dense_s=dense_s,
        bytes_words=sizes[0],
        bytes_dense=sizes[1] - sizes[0],
        questions=answered["questions"],
        eval_s=eval_s,
        documents=data["steps"][0]["taken"],
        data_s=data_s,
    )


def _command(words: Sequence[str]) -> tuple[dict[str, Any], float]:
    began = time.perf_counter()
    command = [sys.executable, "-P", "-m", "agent.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * _MINUTES, check=False)
    if done.returncode:
        raise SetupError(f"cairn {' '.join(words)} failed: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout), time.perf_counter() - began


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def nearest(vectors: int, show: Show) -> list[Nearest]:
    """Each kind of index over the same vectors of length 1."""
    rows, queries = clustered(vectors + QUERIES)[:-QUERIES], clustered(vectors + QUERIES)[-QUERIES:]
    found: list[Nearest] = []
    for kind in KINDS:
        show(f"{vectors:,} vectors, {kind}")
        began = time.perf_counter()
        ann = Ann.build(rows, shape_for(kind, vectors, DIM))
        build_s = time.perf_counter() - began
        with TemporaryDirectory(prefix="cairn-bench-") as folder:
            np.save(Path(folder) / VECTORS, rows)
            ann.save(Path(folder))
            size = (Path(folder) / FILE).stat().st_size if ann.index is not None else 0
        ann.use_threads(1)
        began = time.perf_counter()
        for query in queries:
            ann.search(query[None], 10)
        query_ms = 1000 * (time.perf_counter() - began) / QUERIES
        found.append(Nearest(kind, vectors, build_s, size, query_ms, recall(ann, queries)))
    return found


def clustered(count: int, *, dim: int = DIM, near: float = 0.8, seed: int = 0) -> NDArray[np.float32]:
    """Vectors of length 1 around one centre for each hundred of them. Shape (count, dim)."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(max(1, count // 100), dim)).astype(np.float32)
    made = centres[random.integers(len(centres), size=count)]
    made += near * random.normal(size=(count, dim)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)
