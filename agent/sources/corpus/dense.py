"""The dense part of an index folder: one vector a passage, a nearest-neighbour index of them, and a card.

It knows passages by row number only; the caller keeps the passages and gives their texts in that order.
"""

import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Protocol

import numpy as np
from pydantic import ValidationError

from agent.cores import cores
from agent.errors import CorpusError
from agent.evidence import Frozen
from agent.files.foreign import read_file
from agent.sources.corpus.ann import Ann, AnnShape, Kind, kind_for, recall, shape_for, tuned
from agent.sources.corpus.encoder import Encoder, Vectors
from agent.sources.corpus.vectors import KEYS, VECTORS, VectorLog, exact_vectors, key_of, row_keys

DENSE: Final = "dense"
"""Name of the folder inside an index folder."""
CARD: Final = "card.json"
CARD_BYTES: Final = 1 << 20
CHUNK: Final = 512
"""Passages between two saves of what was calculated."""
PROBES: Final = 200
"""Queries that the recall is measured with."""
PROBE_WORDS: Final = 12


class DenseCard(Frozen):
    """What the dense part says of itself."""

    version: int = 1
    model: str
    """Its name or folder, as it was given."""
    fingerprint: str
    """Of the model's weights: another model of the same name is refused."""
    query_prefix: str
    passage_prefix: str
    dtype: str
    dim: int
    passages: int
    index: AnnShape
    recall_10: float
    """Of the index against flat search, with beginnings of passages as queries."""
    probes: int
    """How many of those."""
    encoded: int
    """Passages whose vector was calculated by this build; the others had one."""
    seconds: float
    bytes: int


class QueryEncoder(Protocol):
    """What a search needs of an encoder."""

    @property
    def fingerprint(self) -> str: ...

    def encode_queries(self, queries: Sequence[str]) -> Vectors: ...


class PassageEncoder(QueryEncoder, Protocol):
    """What a build needs of it."""

    @property
    def name(self) -> str: ...

    @property
    def query_prefix(self) -> str: ...

    @property
    def passage_prefix(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def encode_passages(self, passages: Sequence[str]) -> Vectors: ...


Encode = Callable[[Iterable[list[str]]], Iterator[Vectors]]
"""Gives the vectors of each list of texts, in their order. It may read a few lists ahead."""
Progress = Callable[[int, int], None]
"""Takes how many passages have their vector, and of how many."""


def passage_text(title: str, text: str) -> str:
    """What is encoded of a passage."""
    return f"{title}\n{text}" if title else text


def build_dense(
    passages: Iterable[tuple[str, str]],
    folder: Path,
    *,
    count: int,
    encoder: PassageEncoder,
    kind: Kind | None = None,
    effort: int | None = None,
    older: Path | None = None,
    log: Path | None = None,
    encode: Encode | None = None,
    progress: Progress = lambda done, total: None,
) -> DenseCard:
    """Write the dense part of an index into `folder`; the caller makes that atomic.

    Args:
        passages: title and text of each row, in order; read once.
        folder: where to write; made if it is not there.
        count: how many passages there are.
        encoder: what makes the vectors.
        kind: of the index; None: what fits the size.
        effort: of a search (`ef` or `nprobe`); None: doubled from a usual one until the recall is good.
        older: the dense part of an older index: passages that it knows keep their vector.
        log: a folder beside the index for vectors on their way: a build that follows a killed one finds them there.
            Remove it with `discard` when the index is in its place. None: beside `folder`, removed at the end.
        encode: makes the vectors elsewhere, with the same model; None: `encoder` does.
        progress: takes how far it came.

    Raises:
        CorpusError: there are more or fewer passages than `count`.
        SetupError: this kind of index needs more passages.
    """
    started = perf_counter()
    shape = shape_for(kind or kind_for(count), count, encoder.dim, effort=effort)
    folder.mkdir(parents=True, exist_ok=True)
    kept = log or folder.with_name(f".{folder.name}.vectors")
    known = _Known(older, encoder)
    probes: list[str] = []
    with VectorLog(kept, model=encoder.fingerprint + _tag(encoder), dim=encoder.dim) as new:
        before, made = len(new), encode or partial(_encode_here, encoder)
        vectors = _write_vectors(passages, folder, (count, encoder.dim), made, known, new, probes, progress)
        encoded = len(new) - before
    if log is None:
        discard(kept)
    ann = Ann.build(vectors, shape)
    queries = encoder.encode_queries(probes)
    ann, found = (ann, recall(ann, queries)) if effort else tuned(ann, queries)
    ann.save(folder)
    card = DenseCard(
        **_described(encoder),
        passages=count,
        index=ann.shape,
        recall_10=round(found, 4),
        probes=len(probes),
        encoded=encoded,
        seconds=round(perf_counter() - started, 3),
        bytes=sum(path.stat().st_size for path in folder.iterdir()),
    )
    (folder / CARD).write_text(card.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return card


def _described(encoder: PassageEncoder) -> dict[str, Any]:
    """What a card says of the model."""
    return {
        "model": encoder.name,
        "fingerprint": encoder.fingerprint,
        "query_prefix": encoder.query_prefix,
        "passage_prefix": encoder.passage_prefix,
        "dtype": encoder.dtype,
        "dim": encoder.dim,
    }


def discard(log: Path) -> None:
    """Remove the log of a build whose index is in its place."""
    shutil.rmtree(log, ignore_errors=True)


def _tag(encoder: PassageEncoder) -> str:
    """A prefix changes every vector."""
    return key_of(encoder.passage_prefix).hex()[:8] if encoder.passage_prefix else ""


class _Known:
    """The vectors of an older index, where they were made in the same way."""

    def __init__(self, older: Path | None, encoder: PassageEncoder) -> None:
        self._rows: dict[bytes, int] = {}
        if older is None or not (older / CARD).is_file():
            return
        try:
            card = read_dense_card(older)
            keys, self._vectors = row_keys(older), exact_vectors(older)
        except CorpusError:
            return  # a damaged index has nothing to give; it is about to be replaced
        same = (card.fingerprint, card.passage_prefix) == (encoder.fingerprint, encoder.passage_prefix)
        if same and self._vectors.shape == (len(keys), encoder.dim):
            self._rows = {key: row for row, key in enumerate(keys)}

    def __contains__(self, key: bytes) -> bool:
        return key in self._rows

    def get(self, key: bytes) -> Vectors:
        return self._vectors[self._rows[key]]


def _write_vectors(
    passages: Iterable[tuple[str, str]],
    folder: Path,
    shape: tuple[int, int],
    encode: Encode,
    known: _Known,
    new: VectorLog,
    probes: list[str],
    progress: Progress,
) -> Vectors:
    """Write vectors and keys by row; calculate what neither the older index nor the log has."""
    count = shape[0]
    vectors = np.lib.format.open_memmap(folder / VECTORS, mode="w+", dtype=np.float32, shape=shape)
    keys = np.zeros((count, 16), np.uint8)
    every = max(1, count // PROBES)
    row = 0
    for chunk, missing, made in _encoded(passages, encode, known, new):
        if row + len(chunk) > count:
            raise CorpusError(f"there are more than the {count} passages that were announced")
        if missing:
            new.add(missing, made)
        for title, text in chunk:
            key = key_of(passage_text(title, text))
            vectors[row] = known.get(key) if key in known else new.get(key)
            keys[row] = np.frombuffer(key, np.uint8)
            if row % every == 0 and len(probes) < PROBES:
                probes.append(" ".join(text.split()[:PROBE_WORDS]) or title)
            row += 1
        progress(row, count)
    if row != count:
        raise CorpusError(f"there are {row} passages, and {count} were announced")
    vectors.flush()
    np.save(folder / KEYS, keys)
    return exact_vectors(folder)


def _encode_here(encoder: PassageEncoder, lists: Iterable[list[str]]) -> Iterator[Vectors]:
    none = np.zeros((0, encoder.dim), np.float32)
    return (encoder.encode_passages(texts) if texts else none for texts in lists)


_Chunk = list[tuple[str, str]]


def _encoded(
    passages: Iterable[tuple[str, str]], encode: Encode, known: _Known, new: VectorLog
) -> Iterator[tuple[_Chunk, list[bytes], Vectors]]:
    """Each chunk with the keys that had no vector yet, and the vectors of these. Chunks may be encoded ahead."""
    waiting: deque[tuple[_Chunk, list[bytes]]] = deque()
    on_their_way: set[bytes] = set()

    def texts() -> Iterator[list[str]]:
        for chunk in _chunks(passages):
            wholes = {key_of(whole): whole for whole in (passage_text(*passage) for passage in chunk)}
            missing = [key for key in wholes if key not in known and key not in new and key not in on_their_way]
            on_their_way.update(missing)
            waiting.append((chunk, missing))
            yield [wholes[key] for key in missing]

    for made in encode(texts()):
        chunk, missing = waiting.popleft()
        yield chunk, missing, made
        on_their_way.difference_update(missing)


def _chunks(passages: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    waiting = iter(passages)
    while chunk := list(islice(waiting, CHUNK)):
        yield chunk


def read_dense_card(folder: Path) -> DenseCard:
    """Read the card of a dense part.

    Raises:
        CorpusError: it is missing or damaged.
    """
    try:
        return DenseCard.model_validate_json(read_file(folder / CARD, most=CARD_BYTES, follow=False))
    except (OSError, ValidationError) as error:
        raise CorpusError(f"{folder} holds no readable dense index; build it again with --dense MODEL") from error


def _order(found: tuple[int, float]) -> tuple[float, int]:
    row, score = found
    return -score, row


class DenseIndex:
    """Vectors by row, open for searching. A search may run in any thread."""

    def __init__(self, folder: Path) -> None:
        """Open the dense part of an index.

        Raises:
            CorpusError: it is missing or damaged.
        """
        self.folder = folder
        self.card = read_dense_card(folder)
        self._ann = Ann.open(folder, self.card.index)
        if self._ann.vectors.shape != (self.card.passages, self.card.dim):
            raise CorpusError(f"the dense index in {folder} is damaged: its parts do not fit; build it again")

    def encoder(self, model: str | Path | None = None, *, device: str | None = None) -> Encoder:
        """Load what encodes queries for this index, with the prefix that it was built for.

        Raises:
            SetupError: the model cannot be loaded; CorpusError where it is another one.
        """
        encoder = Encoder.load(
            model or self.card.model,
            device=device,
            query_prefix=self.card.query_prefix,
            passage_prefix=self.card.passage_prefix,
        )
        self.refuse_other(encoder)
        return encoder

    def refuse_other(self, encoder: QueryEncoder) -> None:
        """Say so where queries would be encoded by another model than the passages were.

        Raises:
            CorpusError: they would.
        """
        if encoder.fingerprint != self.card.fingerprint:
            raise CorpusError(
                f"the dense index in {self.folder} was built with the model {self.card.model}, which is not the one "
                "that is to encode the queries; name that model, or build the index again"
            )

    def share_cores(self, workers: int) -> None:
        """Let the thread that calls this use its share of the cores, as one of `workers`.

        Else each of them would wait for threads on all cores: batches of a small index then take three times as long.
        """
        self._ann.use_threads(max(1, cores() // workers))

    def search(self, queries: Vectors, limit: int) -> list[list[tuple[int, float]]]:
        """Rows and cosines of each query, best first, ties by row; at most `limit` of them."""
        scores, rows = self._ann.search(queries, limit)
        return [
            sorted(((row, score) for row, score in zip(near, by, strict=True) if row >= 0), key=_order)
            for near, by in zip(rows.tolist(), scores.tolist(), strict=True)
        ]
