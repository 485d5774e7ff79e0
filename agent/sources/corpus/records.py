"""The stored passages of an index by row: JSON lines mapped into memory, so that processes share the pages."""

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from agent.sources.corpus.documents import Document


class Records:
    """Passages by row number."""

    def __init__(self, file: Path, offsets: Sequence[int]) -> None:
        """Open the passages.

        Args:
            file: JSON lines, at least one.
            offsets: where each line begins, and where the last one ends.

        Raises:
            OSError: the file cannot be opened.
            ValueError: it is empty.
        """
        self._offsets = offsets
        with file.open("rb") as records:
            self._map = mmap.mmap(records.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> Document:
        return Document.model_validate_json(self._map[self._offsets[row] : self._offsets[row + 1]])

    def __iter__(self) -> Iterator[Document]:
        return (self[row] for row in range(len(self)))

    def close(self) -> None:
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ending: object) -> None:
        self.close()
