"""Names that are spelled nearly so: which names share the most triples of bytes, as sorted lists of name numbers.

The lists are written in parts while names come in, so memory stays bounded however many names there are.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from agent.sources.kg.schema import SPELLING

PART_BITS: Final = 16
"""A list's row number is its gram, shifted by so much, and the part."""
BUFFER_BYTES: Final = 2_000_000
"""Bytes of names that are sorted at once."""
POSTINGS: Final = 60_000
"""Entries that are read for one query: those of its rarest grams."""
CANDIDATES: Final = 192
"""Names that are then compared letter by letter."""
_END: Final = 0x0A
_PARTS: Final = "FROM spelling WHERE id BETWEEN ? AND ?"

Ids = NDArray[np.uint32]
Grams = NDArray[np.uint64]


def grams_of(folded: str) -> list[int]:
    """The distinct grams of a name: three bytes each, with its start and its end marked."""
    data = b"\n" + folded.encode("utf-8", "replace") + b"\n"
    return sorted({data[i] << 16 | data[i + 1] << 8 | data[i + 2] for i in range(len(data) - 2)})


class SpellingWriter:
    """Takes names in the order of their numbers, and writes the lists."""

    def __init__(self, connection: sqlite3.Connection, *, buffer: int = BUFFER_BYTES) -> None:
        self._connection = connection
        self._buffer = buffer
        self._part = 0
        self._names: list[bytes] = []
        self._ids: list[int] = []
        self._bytes = 0
        connection.execute(SPELLING)

    def add(self, number: int, folded: str) -> None:
        name = folded.encode("utf-8", "replace")
        self._names.append(name)
        self._ids.append(number)
        self._bytes += len(name) + 1
        if self._bytes >= self._buffer:
            self.flush()

    def flush(self) -> None:
        """Write what was taken since the last time."""
        if not self._names:
            return
        pairs = _pairs(self._names, self._ids)
        assert self._part < 1 << PART_BITS, "the parts have a number of their own"
        self._connection.executemany("INSERT INTO spelling VALUES (?, ?)", _rows(pairs, self._part))
        self._part += 1
        self._names, self._ids, self._bytes = [], [], 0


def _pairs(names: Iterable[bytes], ids: list[int]) -> Grams:
    """Sorted and distinct: gram << 32 | number of the name."""
    data = np.frombuffer(b"\n" + b"\n".join(names) + b"\n", dtype=np.uint8)
    grams = data[:-2].astype(np.uint64) << np.uint64(16)
    grams |= data[1:-1].astype(np.uint64) << np.uint64(8)
    grams |= data[2:].astype(np.uint64)
    ends = np.cumsum(data == _END)[:-2] - 1  # a gram that starts at a mark belongs to the name behind it
    grams <<= np.uint64(32)
    grams |= np.asarray(ids, dtype=np.uint64)[ends]
    return np.unique(grams[data[1:-1] != _END])


def _rows(pairs: Grams, part: int) -> Iterator[tuple[int, bytes]]:
    grams = (pairs >> np.uint64(32)).astype(np.int64)
    ids = (pairs & np.uint64(0xFFFFFFFF)).astype("<u4")
    starts = np.flatnonzero(np.diff(grams, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(ids)], strict=True):
        yield int(grams[start]) << PART_BITS | part, ids[start:end].tobytes()


class RunsStatement(Protocol):
    """Runs a statement; `kinds` are those of its columns."""

    def __call__(self, sql: str, parameters: Sequence[object], *, kinds: str) -> list[tuple[Any, ...]]: ...


def alike(rows: RunsStatement, folded: str, *, postings: int = POSTINGS, most: int = CANDIDATES) -> Ids:
    """Numbers of the names that share the most grams with `folded`, best first; ties go to the lower number."""
    lists = _rarest(rows, grams_of(folded), postings=postings)
    if not lists:
        return np.empty(0, dtype=np.uint32)
    together = np.sort(np.concatenate(lists))
    starts = np.flatnonzero(np.concatenate(([True], together[1:] != together[:-1])))
    shared = np.minimum(np.diff(starts, append=len(together)), 255).astype(np.uint8)
    if len(starts) > most:
        as_many = np.cumsum(np.bincount(shared, minlength=256)[::-1])[::-1]  # at n: names that share n or more
        least = int(np.flatnonzero(as_many >= most).max())
        more = np.flatnonzero(shared > least)
        kept = np.concatenate((more, np.flatnonzero(shared == least)[: most - len(more)]))
        starts, shared = starts[kept], shared[kept]
    return together[starts[np.argsort(np.uint8(255) - shared, kind="stable")]]


def _rarest(rows: RunsStatement, grams: list[int], *, postings: int) -> list[Ids]:
    """The lists of the rarest grams, as many as may be read; at least the rarest one, cut."""
    sizes: list[tuple[int, int]] = []
    for gram in grams:
        ((size,),) = rows(f"SELECT sum(length(names)) {_PARTS}", _parts_of(gram), kinds="I")
        if size:
            sizes.append((size // 4, gram))
    lists: list[Ids] = []
    left = postings
    for size, gram in sorted(sizes):
        if size > left and lists:
            break
        part, last = _parts_of(gram)
        while left > 0 and (found := rows(f"SELECT id, names {_PARTS} ORDER BY id LIMIT 1", (part, last), kinds="ib")):
            names = found[0][1]
            lists.append(np.frombuffer(names, dtype="<u4", count=min(left, len(names) // 4)))
            left -= len(lists[-1])
            part = found[0][0] + 1
    return lists


def _parts_of(gram: int) -> tuple[int, int]:
    return gram << PART_BITS, (gram + 1 << PART_BITS) - 1
