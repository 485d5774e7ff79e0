"""Vectors by the text they were made of: what an older index holds, and a log of what was calculated since.

A killed build loses only the chunk that it was at: the log is appended, vectors first, and read again by the next one.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

import numpy as np
from numpy.typing import NDArray

from agent.errors import CorpusError
from agent.files.foreign import is_real_file, is_real_folder
from agent.sources.arrays import load_array

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
    return load_array(folder / VECTORS, np.float32, ndim=2)


def row_keys(folder: Path) -> list[bytes]:
    """The key of each row of an index.

    Raises:
        CorpusError: they are missing or damaged.
    """
    raw = load_array(folder / KEYS, np.uint8, ndim=2)
    if raw.shape[1] != KEY_BYTES:
        raise CorpusError(f"the keys in {folder} are damaged; build the index again")
    return [row.tobytes() for row in raw]


class VectorLog:
    """Vectors that a build has calculated, on disk, by key. One process writes at a time."""

    def __init__(self, folder: Path, *, model: str, dim: int) -> None:
        """Open the log of one model; what was calculated by another one, or broke off in the middle, is dropped."""
        self._dim = dim
        stem = f"{model}-{dim}"
        _make_room(folder, stem)
        self._keys = _open_own(folder / f"{stem}.keys")
        self._vectors = _open_own(folder / f"{stem}.vectors")
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


def _make_room(folder: Path, stem: str) -> None:
    """A folder that holds the files of one log alone: what else lies there is removed, through no link."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.iterdir():
        if is_real_folder(other):
            shutil.rmtree(other)
        elif other.stem != stem or not is_real_file(other) or other.lstat().st_nlink > 1:
            other.unlink()


def _open_own(path: Path) -> BinaryIO:
    """Open a file to read and append, or make it; never what a link leads to."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o600), "a+b")


def _settle(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
