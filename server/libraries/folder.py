"""The folder of the libraries: uploaded bytes, and the indices made of them. For the user alone.

DIR/files/file-1a2b….pdf      an uploaded file, whole; its name is in the database
DIR/files/.upload-…           one that is on its way; removed at the next start if its server died
DIR/indices/vs_1a2b…/0/       a shard of a library: an index folder
"""

import asyncio
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from platformdirs import user_data_path

from agent.files.foreign import read_file
from agent.files.own import private_folder
from agent.sources.corpus.finding import SUFFIXES, SourceFile
from server.store.database import Database, default_path

FILE_ID: Final = re.compile(r"file-[0-9a-f]{24}")
LIBRARY_ID: Final = re.compile(r"vs_[0-9a-f]{24}")
NAME_CHARS: Final = 400
_UPLOAD: Final = ".upload-"
_FLUSH_BYTES: Final = 1 << 20
_OWNER: Final = ".store"
"""Holds the hash of the name of the database that the folder belongs to."""
_STRAY_SECONDS: Final = 3600
"""A file that no row names for so long is what a killed server left."""
_NO_NAME: Final = re.compile(r"[\x00-\x1f\x7f]")


def folder_of(database: Database) -> Path | None:
    """Where the libraries of a database are kept by default, apart from those of others; None: of one in memory."""
    data = user_data_path("cairn", appauthor=False)
    match database.file:
        case None if database.dialect == "sqlite":
            return None
        case None:
            return data / f"libraries-{hashlib.sha256(database.name.encode()).hexdigest()[:12]}"
        case file if file == default_path():
            return data / "libraries"
        case file:
            return file.with_name(f"{file.name}.libraries")


def new_id(kind: str) -> str:
    """An id that no one can guess: `file-…` or `vs_…`."""
    return f"{kind}{uuid4().hex[:24]}"


def plain_name(given: str) -> str:
    """A file's name as it is kept: a relative path without `..`, control characters or an end that is too long."""
    parts = [part.strip() for part in _NO_NAME.sub("", given.replace("\\", "/")).split("/")]
    kept = [part for part in parts if part and part not in (".", "..")]
    name = "/".join(kept)
    if len(name) > NAME_CHARS:
        suffix = Path(name).suffix[:16]
        name = name[: NAME_CHARS - len(suffix)] + suffix
    return name


class LibraryFolder:
    """Paths, and what is written and removed there."""

    def __init__(self, folder: Path | None = None) -> None:
        """Name a folder; None: one that is there from `open` to `close`, for a store in memory."""
        self._own = folder is None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.folder = Path(folder or "").expanduser()

    @property
    def files(self) -> Path:
        return self.folder / "files"

    def open(self) -> None:
        """Make the folders, and remove what uploads of a dead server left.

        Raises:
            SetupError: others may write into it. OSError: it cannot be made.
        """
        if self._own and self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="cairn-libraries-")
            self.folder = Path(self._temporary.name)
        for folder in (self.folder, self.files, self.folder / "indices"):
            private_folder(folder)
        for path in self.files.glob(f"{_UPLOAD}*"):
            if _age(path) > _STRAY_SECONDS:
                path.unlink(missing_ok=True)

    def belongs_to(self, database: Database) -> bool:
        """Whether what the database does not know may be removed here: the first one that uses the folder owns it.

        Raises:
            OSError: it cannot be seen or written down.
        """
        name = str(database.file.resolve()) if database.file else database.name
        mine, owner = hashlib.sha256(name.encode()).hexdigest().encode(), self.folder / _OWNER
        with suppress(FileExistsError), owner.open("xb") as file:
            file.write(mine)
        return read_file(owner, most=len(mine)) == mine

    def close(self) -> None:
        """Remove a temporary folder."""
        if self._temporary:
            self._temporary.cleanup()
            self._temporary = None

    def path_of(self, id: str, name: str) -> Path:
        """Where the bytes of a file are; only its kind is taken from the name that its owner gave it."""
        suffix = Path(name).suffix.lower()
        return self.files / f"{id}{suffix if suffix in SUFFIXES else ''}"

    def source_file(self, id: str, name: str, url: str) -> SourceFile:
        """The file as an index reads it. Its name there is its id; a title that it lacks is made of its own name."""
        path = self.path_of(id, name)
        return SourceFile(path, id, path, title=Path(name).stem, url=url)

    def shards(self, library: str) -> Path:
        """The folder that holds a library's index folders."""
        return self.folder / "indices" / library

    def shard(self, library: str, number: int) -> Path:
        return self.shards(library) / str(number)

    def upload(self) -> "Upload":
        """Begin to write a file."""
        return Upload(self.files / f"{_UPLOAD}{uuid4().hex}")

    def take(self, upload: "Upload", id: str, name: str) -> None:
        """A file is whole: it gets its place.

        Raises:
            OSError: it cannot be kept.
        """
        upload.path.replace(self.path_of(id, name))

    def remove_file(self, id: str, name: str) -> None:
        """Remove the bytes of a file."""
        self.path_of(id, name).unlink(missing_ok=True)

    def remove_index(self, library: str) -> None:
        """Remove what was made of a library."""
        shutil.rmtree(self.shards(library), ignore_errors=True)

    def remove_shard(self, library: str, number: int) -> None:
        shutil.rmtree(self.shard(library, number), ignore_errors=True)

    def strays(self) -> Iterator[tuple[str, Path]]:
        """Files and indices that are old enough to have a row, by id."""
        for path in self.files.iterdir():
            found = FILE_ID.match(path.name)
            if found and _age(path) > _STRAY_SECONDS:
                yield found[0], path
        for path in (self.folder / "indices").iterdir():
            if LIBRARY_ID.fullmatch(path.name):
                yield path.name, path

    def remove_strays(self, known: Callable[[str], bool], strays: Iterable[tuple[str, Path]]) -> None:
        """Remove those that no row names any more."""
        for id, path in strays:
            if not known(id):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


class Upload:
    """A file on its way, written to disk piece by piece; it is removed unless it was taken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        self._file = path.open("xb")
        os.chmod(path, 0o600)
        self._waiting = bytearray()

    async def write(self, data: bytes) -> None:
        """Take a piece.

        Raises:
            OSError: the disk is full.
        """
        self.bytes += len(data)
        self._waiting += data
        if len(self._waiting) >= _FLUSH_BYTES:
            await self._flush()

    async def finish(self) -> None:
        """Have everything on the disk.

        Raises:
            OSError: it cannot be written.
        """
        await self._flush()
        await asyncio.to_thread(os.fsync, self._file.fileno())
        self._file.close()

    def discard(self) -> None:
        """Remove what was written, unless it was taken meanwhile."""
        with suppress(OSError):
            self._file.close()
        self.path.unlink(missing_ok=True)

    async def _flush(self) -> None:
        data, self._waiting = bytes(self._waiting), bytearray()

        def write() -> None:
            self._file.write(data)
            self._file.flush()

        await asyncio.to_thread(write)


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
