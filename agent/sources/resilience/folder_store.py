"""The query cache's folder: bytes by key in one SQLite file, for the user alone. Nothing in it is ever unpickled.

A folder of an older Cairn, which kept pickles, is emptied unread.
"""

import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent.files.own import private_file, private_folder

FILE: Final = "searches.sqlite"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS entries (
    at INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, value BLOB NOT NULL, expires REAL NOT NULL
) STRICT
"""
_PRAGMAS: Final = ("trusted_schema=OFF", "journal_mode=WAL", "synchronous=NORMAL")
_OLD_FILES: Final = ("cache.db", "cache.db-wal", "cache.db-shm")
_OLD_PARTS: Final = tuple(f"{part:03}" for part in range(8))
_OLD_VALUE: Final = re.compile(r"[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{28}\.val")
_DROPPED_AT_ONCE: Final = 32


class FolderStore:
    """One connection, used by one thread at a time."""

    def __init__(self, folder: Path, *, max_bytes: int, busy_seconds: float) -> None:
        """Open the folder, and make it where it is not there.

        Raises:
            NotPrivate: other users own it or may write into it.
            OSError: it cannot be made.
            sqlite3.Error: its file is damaged.
        """
        folder = private_folder(folder)
        for path in _left_over(folder):
            with suppress(OSError):
                path.unlink()
        self._max_bytes = max_bytes
        self._using = threading.Lock()
        self._connection = sqlite3.connect(
            private_file(folder / FILE), timeout=busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in _PRAGMAS:
                self._connection.execute(f"PRAGMA {pragma}")
            self._connection.execute(_SCHEMA)
        except sqlite3.Error:
            self._connection.close()
            raise

    def get(self, key: str) -> bytes | None:
        """What is kept under a key and is not over."""
        with self._using:
            row = self._connection.execute(
                "SELECT value FROM entries WHERE key = ? AND expires > ?", (key, time.time())
            ).fetchone()
        return row[0] if row and isinstance(row[0], bytes) else None

    def put(self, key: str, value: bytes, *, seconds: float) -> None:
        """Keep something; where the file would grow beyond its bound, what is over and what is oldest goes."""
        now = time.time()
        with self._using:
            self._connection.execute(
                "INSERT OR REPLACE INTO entries (key, value, expires) VALUES (?, ?, ?)", (key, value, now + seconds)
            )
            if self._used() > self._max_bytes:
                self._connection.execute("DELETE FROM entries WHERE expires <= ?", (now,))
            while self._used() > self._max_bytes and self._drop_oldest():
                pass

    def close(self) -> None:
        """Close the file."""
        with self._using:
            self._connection.close()

    def _used(self) -> int:
        """Bytes of the pages that hold something."""
        pages, free, size = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    def _drop_oldest(self) -> int:
        oldest = f"SELECT at FROM entries ORDER BY at LIMIT {_DROPPED_AT_ONCE}"
        return self._connection.execute(f"DELETE FROM entries WHERE at IN ({oldest})").rowcount


def _left_over(folder: Path) -> Iterator[Path]:
    """The files of the cache that older versions kept here and in eight parts of it, whose rows may be pickles."""
    parts = [folder / part for part in _OLD_PARTS if not (folder / part).is_symlink()]
    for part in (*parts, folder):
        if (part / _OLD_FILES[0]).exists():
            values = (path for path in part.glob("??/??/*.val") if _is_old_value(path.relative_to(part), part))
            yield from (*values, *(part / name for name in _OLD_FILES[::-1]))


def _is_old_value(inside: Path, part: Path) -> bool:
    linked = any((part / up).is_symlink() for up in inside.parents[:-1])
    return _OLD_VALUE.fullmatch(inside.as_posix()) is not None and not linked
