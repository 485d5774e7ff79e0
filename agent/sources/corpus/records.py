"""The stored passages of an index by row: JSON lines mapped into memory, so that processes share the pages."""

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from agent.errors import CorpusError
from agent.files.foreign import open_file
from agent.sources.corpus.documents import StoredPassage
from agent.sources.corpus.finding import LINE_BYTES, SourceFile

Row = tuple[int, StoredPassage, SourceFile]
"""A passage by its number, and the file that it comes from."""

LONGEST: Final = 8 * LINE_BYTES
"""Bytes of one stored passage: its fields are bounded, and JSON spells some characters with several bytes."""


class Records:
    """Passages by row number."""

    def __init__(self, file: Path, offsets: "NDArray[np.int64] | Any") -> None:
        """Open the passages.

        Args:
            file: JSON lines, at least one.
            offsets: where each line begins, and where the last one ends.

        Raises:
            OSError: the file cannot be opened.
            ValueError: it is empty, or not what the offsets describe.
        """
        self._file = file
        self._offsets = offsets
        with open_file(file, follow=False) as records:
            self._map = mmap.mmap(records.fileno(), 0, access=mmap.ACCESS_READ)
        if len(offsets) < 2 or int(offsets[0]) != 0 or int(offsets[-1]) != len(self._map):
            self._map.close()
            raise ValueError(f"{file.name} and its offsets do not fit")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def line(self, row: int) -> bytes:
        """A passage as it is stored.

        Raises:
            CorpusError: the index is damaged.
        """
        start, end = int(self._offsets[row]), int(self._offsets[row + 1])
        if not 0 <= start < end <= len(self._map) or end - start > LONGEST:
            raise self._damaged(row)
        return self._map[start:end]

    def __getitem__(self, row: int) -> StoredPassage:
        """One passage.

        Raises:
            CorpusError: the index is damaged.
        """
        try:
            return StoredPassage.model_validate_json(self.line(row))
        except ValidationError as error:
            raise self._damaged(row) from error

    def __iter__(self) -> Iterator[StoredPassage]:
        return (self[row] for row in range(len(self)))

    def _damaged(self, row: int) -> CorpusError:
        return CorpusError(f"the index is damaged: passage {row} in {self._file} cannot be read; build it again")

    def close(self) -> None:
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ending: object) -> None:
        self.close()


@dataclass
class Doubles:
    """What gives way."""

    rows: set[int] = field(default_factory=set[int])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Records of each file, by its name."""
    first: dict[str, str] = field(default_factory=dict[str, str])
    """The id of the first of them."""


def find_doubles(rows: Callable[[], Iterable[Row]], twice: Sequence[bool]) -> Doubles:
    """Which records give way to an earlier one of the same id, or to a passage of a file that is no JSON lines.

    Args:
        rows: gives all passages, in their order; is read twice.
        twice: of each row, whether its id may occur twice.
    """
    owned = {document.id for row, document, file in rows() if twice[row] and file.kind != "lines"}
    found = Doubles()
    for record in _records(row for row in rows() if row[2].kind == "lines"):
        ids = [document.id for row, document, _ in record if twice[row]]
        if owned.isdisjoint(ids):
            owned.update(ids)
            continue
        _, first, file = record[0]
        found.rows.update(row for row, _, _ in record)
        found.counts[file.name] = found.counts.get(file.name, 0) + 1
        found.first.setdefault(file.name, first.document)
    return found


def _records(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The passages of one record lie together, in the order of its text."""
    record: list[Row] = []
    for row in rows:
        if record and not _goes_on(record[-1], row):
            yield record
            record = []
        record.append(row)
    if record:
        yield record


def _goes_on(last: Row, row: Row) -> bool:
    return (last[2].name, last[1].document) == (row[2].name, row[1].document) and row[1].start > last[1].start
