"""Vectors by the text they were made of: what an older index holds, and a log of what was calculated since.

A killed build loses only the chunk that it was at: the log is appended, vectors first, and read again by the next one.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from agent.errors import CorpusError

KEY_BYTES: Final = 16
VECTORS: Final = "vectors.npy"
KEYS: Final = "keys.npy"


def key_of(text: str) -> bytes:
    """The same text has the same key; two texts practically never do."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def exact_vectors(folder: Path) -> NDArray[np.float32]:
    """The vectors of an index by row, mapped into memory: processes that open them share the pages.

    Raises:
        CorpusError: they are missing or damaged.
    """
    try:
        mapped: NDArray[np.float32] = np.load(folder / VECTORS, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise CorpusError(f"{folder} holds no readable vectors ({error}); build the index again") from error
    if mapped.ndim != 2 or mapped.dtype != np.float32:
        raise CorpusError(f"the vectors in {folder} are damaged; build the index again")
    return mapped


def row_keys(folder: Path) -> list[bytes]:
    """The key of each row of an index.

    Raises:
        CorpusError: they are missing or damaged.
    """
    try:
        raw: NDArray[np.uint8] = np.load(folder / KEYS)
    except (OSError, ValueError, EOFError) as error:
        raise CorpusError(f"{folder} holds no readable keys ({error}); build the index again") from error
    return [row.tobytes() for row in raw]


class VectorLog:
    """Vectors that a build has calculated, on disk, by key. One process writes at a time."""

    def __init__(self, folder: Path, *, model: str, dim: int) -> None:
        """Open the log of one model; what was calculated by another one, or broke off in the middle, is dropped."""
        self._dim = dim
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{model}-{dim}"
        for other in folder.iterdir():
            if other.stem != stem:
                other.unlink()
        self._keys = (folder / f"{stem}.keys").open("a+b")
        self._vectors = (folder / f"{stem}.vectors").open("a+b")
        size = 4 * dim
        count = min(
            os.fstat(self._keys.fileno()).st_size // KEY_BYTES, os.fstat(self._vectors.fileno()).st_size // size
        )
        self._keys.truncate(count * KEY_BYTES)
        self._vectors.truncate(count * size)
        self._keys.seek(0)
        known = self._keys.read()
        self._places = {known[at : at + KEY_BYTES]: at // KEY_BYTES for at in range(0, len(known), KEY_BYTES)}
        self._count = count

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def add(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Append; when this returns, a kill cannot take it away any more."""
        self._vectors.write(np.ascontiguousarray(vectors, np.float32).tobytes())
        _settle(self._vectors)
        self._keys.write(b"".join(keys))
        _settle(self._keys)
        for key in keys:
            self._places[key] = self._count
            self._count += 1

    def get(self, key: bytes) -> NDArray[np.float32]:
        at = self._places[key] * 4 * self._dim
        return np.frombuffer(os.pread(self._vectors.fileno(), 4 * self._dim, at), np.float32)

    def close(self) -> None:
        self._keys.close()
        self._vectors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ending: object) -> None:
        self.close()


def _settle(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
