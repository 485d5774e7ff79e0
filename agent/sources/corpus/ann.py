"""Nearest neighbours by inner product: faiss's flat, HNSW, IVF-SQ8 and IVF-PQ behind one face. It knows no texts.

Flat search reads the vectors' own file, so that it needs no second copy. IVF-PQ alone is too coarse: what it finds is
scored again with the exact vectors. All of them are mapped into memory, so that processes share the pages.
"""

import math
import os
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from agent.errors import CorpusError, SetupError
from agent.evidence import Frozen
from agent.files.foreign import open_file
from agent.sources.corpus.libraries import need
from agent.sources.corpus.vectors import exact_vectors

Kind = Literal["flat", "hnsw", "ivf-sq8", "ivf-pq"]
Rows = NDArray[np.int64]
Scores = NDArray[np.float32]

FILE: Final = "ann.faiss"
LINKS: Final = 32
"""Neighbours of a node of HNSW."""
BUILD_EFFORT: Final = 80
"""How many candidates HNSW looks at while it is built."""
GOOD_RECALL: Final = 0.95
"""The effort of a search is doubled at build time until the recall is this good, or the effort at its bound."""
MOST_EFFORT: Final = 512
RESCORED: Final = 16
"""IVF-PQ finds this many times more than is wanted, and the exact vectors choose among them."""
TRAINED_ON: Final = 64
"""Vectors for each cell that IVF is trained on."""
EXACT: Final = 4096
"""Rows whose exact vectors are read at a time."""


TABLE_BYTES: Final = 256 << 20
"""What faiss may make of a small index while it reads it, beside what is in the file: tables of distances."""


class AnnShape(Frozen):
    """What an index is made of; written into its card."""

    kind: Kind
    effort: int = 0
    """How far a search looks: `ef` of HNSW, `nprobe` of IVF; 0 for flat."""
    cells: int = 0
    """Of IVF."""
    codes: int = 0
    """Bytes of a vector in IVF-PQ."""
    rescored: int = 1


def kind_for(rows: int) -> Kind:
    """What fits a corpus of this size, where no one chooses."""
    if rows < 50_000:
        return "flat"
    if rows < 1_000_000:
        return "hnsw"
    return "ivf-sq8" if rows < 20_000_000 else "ivf-pq"


def shape_for(kind: Kind, rows: int, dim: int, *, effort: int | None = None) -> AnnShape:
    """The usual parameters for N vectors.

    Raises:
        SetupError: there are too few vectors for this kind.
    """
    if kind == "flat":
        return AnnShape(kind=kind)
    if kind == "hnsw":
        return AnnShape(kind=kind, effort=effort or 64)
    if rows < 256:
        raise SetupError(f"{kind} needs at least 256 passages, there are {rows}; choose flat or hnsw")
    cells = max(1, min(int(4 * math.sqrt(rows)), rows // 39))
    wide = effort or max(8, cells // 64)
    if kind == "ivf-sq8":
        return AnnShape(kind=kind, effort=min(wide, cells), cells=cells)
    codes = next(codes for codes in (dim // 4, dim // 8, 1) if codes and dim % codes == 0)
    return AnnShape(kind=kind, effort=min(wide, cells), cells=cells, codes=codes, rescored=RESCORED)


class Ann:
    """An index that is open. Searches may run in several threads."""

    def __init__(self, index: Any, vectors: NDArray[np.float32], shape: AnnShape) -> None:
        self._faiss = need("faiss")
        self.index = index
        """None: the vectors themselves are searched."""
        self.vectors = vectors
        self.shape = shape

    @classmethod
    def build(cls, vectors: NDArray[np.float32], shape: AnnShape) -> "Ann":
        """Make an index of vectors by row."""
        faiss = need("faiss")
        if shape.kind == "flat":
            return cls(None, vectors, shape)
        index = _empty(faiss, shape, vectors.shape[1])
        if not index.is_trained:
            index.train(_some(vectors, TRAINED_ON * max(shape.cells, 256)))
        for at in range(0, len(vectors), 65_536):
            index.add(np.ascontiguousarray(vectors[at : at + 65_536]))
        return cls(index, vectors, shape)

    def save(self, folder: Path) -> None:
        """Write what the vectors' own file does not hold; the caller makes that atomic."""
        if self.index is not None:
            self._faiss.write_index(self.index, str(folder / FILE))

    @classmethod
    def open(cls, folder: Path, shape: AnnShape) -> "Ann":
        """Open what `save` wrote, beside the vectors' file, by mmap.

        Raises:
            CorpusError: it is missing or damaged.
        """
        faiss = need("faiss")
        vectors = exact_vectors(folder)
        if shape.kind == "flat":
            return cls(None, vectors, shape)
        mapped = faiss.IO_FLAG_MMAP_IFC if shape.kind == "hnsw" else faiss.IO_FLAG_MMAP
        try:
            with open_file(folder / FILE, follow=False) as file:
                size = os.fstat(file.fileno()).st_size
            faiss.set_deserialization_vector_byte_limit(4 * size + TABLE_BYTES)  # a file may claim anything
            faiss.set_deserialization_loop_limit(size + TABLE_BYTES)
            index = faiss.read_index(str(folder / FILE), mapped)
        except (OSError, RuntimeError, MemoryError) as error:
            raise CorpusError(f"{folder} holds no readable {shape.kind} index; build it again") from error
        if index.ntotal != len(vectors) or index.d != vectors.shape[1]:
            raise CorpusError(f"the {shape.kind} index in {folder} does not fit its vectors; build it again")
        return cls(index, vectors, shape)

    def search(self, queries: NDArray[np.float32], limit: int, *, effort: int | None = None) -> tuple[Scores, Rows]:
        """The nearest rows of each query, best first.

        Args:
            queries: shape (queries, dim).
            limit: rows for each query, if there are as many.
            effort: instead of the one that the index was built with.

        Returns:
            Inner products and rows, each of shape (queries, at most limit). A row -1 (and the score -inf) stands where
            an approximate index found fewer.

        Raises:
            CorpusError: the index is damaged.
        """
        limit = min(limit, len(self.vectors))
        if not len(queries) or limit < 1:
            return np.zeros((len(queries), 0), np.float32), np.zeros((len(queries), 0), np.int64)
        if self.index is None:
            scores, rows = self._faiss.knn(queries, self.vectors, limit, metric=self._faiss.METRIC_INNER_PRODUCT)
            return scores, rows
        wanted = min(limit * self.shape.rescored, len(self.vectors))
        found = self._found(queries, wanted, self._parameters(effort or self.shape.effort, limit, wanted))
        if self.shape.rescored == 1:
            return np.where(found[1] < 0, -np.inf, found[0]).astype(np.float32), found[1]
        return self._rescore(queries, found[1], limit)

    def _found(self, queries: NDArray[np.float32], wanted: int, parameters: Any) -> tuple[Scores, Rows]:
        """What faiss finds, if a stranger's index names rows that are there."""
        try:
            scores, rows = self.index.search(queries, wanted, params=parameters)
        except (RuntimeError, MemoryError) as error:
            raise CorpusError(f"the {self.shape.kind} index is damaged ({error}); build it again") from error
        if rows.min() < -1 or rows.max() >= len(self.vectors):
            raise CorpusError(f"the {self.shape.kind} index names passages that are not there; build it again")
        return scores, rows

    def use_threads(self, count: int) -> None:
        """Let the thread that calls this search with N of faiss's own threads; it starts with one a core."""
        self._faiss.omp_set_num_threads(count)

    def but(self, effort: int) -> "Ann":
        """The same index with another effort."""
        return Ann(self.index, self.vectors, self.shape.model_copy(update={"effort": effort}))

    def _parameters(self, effort: int, limit: int, wanted: int) -> Any:
        """An effort that can find N rows: a request for all rows gets them."""
        if self.shape.kind == "hnsw":
            return self._faiss.SearchParametersHNSW(efSearch=max(effort, wanted))
        needed = math.ceil(2 * self.shape.cells * limit / len(self.vectors))
        return self._faiss.SearchParametersIVF(nprobe=min(max(effort, needed), self.shape.cells))

    def _rescore(self, queries: NDArray[np.float32], rows: Rows, limit: int) -> tuple[Scores, Rows]:
        """Order candidates by their exact vectors."""
        scores = np.full(rows.shape, -np.inf, np.float32)
        for query, (vector, near) in enumerate(zip(queries, rows, strict=True)):
            there = np.flatnonzero(near >= 0)
            for at in range(0, len(there), EXACT):
                some = there[at : at + EXACT]
                scores[query, some] = self.vectors[near[some]] @ vector
        order = np.argsort(-scores, axis=1, kind="stable")[:, :limit]
        return np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)


def recall(ann: Ann, queries: NDArray[np.float32], *, cut: int = 10, effort: int | None = None) -> float:
    """Share of the `cut` exact nearest rows that an index finds among its first `cut`; mean over the queries."""
    if ann.shape.kind == "flat" or not len(queries):
        return 1.0
    exact = Ann(None, ann.vectors, AnnShape(kind="flat")).search(queries, cut)[1]
    found = ann.search(queries, cut, effort=effort)[1]
    both = [len(set(a) & set(b)) for a, b in zip(exact.tolist(), found.tolist(), strict=True)]
    return sum(both) / exact.size


def tuned(ann: Ann, queries: NDArray[np.float32]) -> tuple[Ann, float]:
    """The same index with the least effort, from its own upwards, that gives good recall; and that recall."""
    effort = ann.shape.effort
    most = max(effort, min(MOST_EFFORT, ann.shape.cells or MOST_EFFORT))
    while (found := recall(ann, queries, effort=effort or None)) < GOOD_RECALL and effort < most:
        effort = min(2 * effort, most)
    return ann.but(effort), found


def _empty(faiss: Any, shape: AnnShape, dim: int) -> Any:
    product = faiss.METRIC_INNER_PRODUCT
    if shape.kind == "hnsw":
        index = faiss.IndexHNSWFlat(dim, LINKS, product)
        index.hnsw.efConstruction = BUILD_EFFORT
        return index
    code = "SQ8" if shape.kind == "ivf-sq8" else f"PQ{shape.codes}"
    index = faiss.index_factory(dim, f"IVF{shape.cells},{code}", product)
    if shape.kind == "ivf-pq":
        index.do_polysemous_training = False  # a minute of annealing for a search that is not used here
    return index


def _some(vectors: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """Evenly spread rows, so that the same vectors give the same index."""
    step = max(1, math.ceil(len(vectors) / most))
    return np.ascontiguousarray(vectors[::step])
