"""A graph's SQLite file that a stranger may have made, opened so that it can be read and do nothing else.

Its tables must be those that a build makes: no views, no triggers. Every value is looked at before it is used, and
every statement has a time after which it is stopped.
"""

import sqlite3
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self

from agent.errors import SetupError
from agent.files.foreign import open_file
from agent.sources.kg.schema import APPLICATION_ID, INDEX, SCHEMA, SPELLING

CACHE_KIB: Final = 8 * 1024
"""Of one connection. The file is not mapped: what the system caches of it is not this process's memory."""
STATEMENT_SECONDS: Final = 5.0
"""No statement needs a hundredth of that."""
VALUE_BYTES: Final = 16 << 20
"""The longest value that SQLite may give: the names of one gram."""
TEXT_CHARS: Final = 20_000
"""The longest name."""
_STEPS: Final = 10_000
"""Of SQLite's machine, between two looks at the clock."""
_KINDS: Final[dict[str, type]] = {"i": int, "s": str, "t": str, "b": bytes}

Parameters = Sequence[object] | dict[str, object]


class GraphDatabase:
    """One connection for one thread at a time."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path = path
        self._db = db
        self._until = float("inf")
        self._whole = float("inf")
        db.set_progress_handler(lambda: monotonic() > self._until, _STEPS)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a graph file.

        Raises:
            SetupError: it cannot be read, or is no graph.
        """
        try:
            open_file(path).close()
            # Immutable: the file is replaced, never changed, so no lock is taken and it may lie on a read-only disk.
            db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        except (OSError, ValueError, sqlite3.Error) as error:
            raise SetupError(f"the graph {path} cannot be read: {getattr(error, 'strerror', '') or error}") from error
        opened = cls(path, db)
        try:
            opened._restrict()
            opened._check()
        except BaseException:
            db.close()
            raise
        return opened

    def close(self) -> None:
        self._db.close()

    def begin(self, seconds: float) -> None:
        """Let all statements from now until `end` take so long together, and not more."""
        self._whole = monotonic() + seconds

    def end(self) -> None:
        self._whole = float("inf")

    def rows(self, sql: str, parameters: Parameters = (), *, kinds: str) -> list[tuple[Any, ...]]:
        """All rows that a statement gives; it bounds their number itself.

        Args:
            sql: the statement.
            parameters: of it.
            kinds: of the columns, a letter each: i integer, s name, t longer text, b bytes; in capitals, or nothing.

        Raises:
            SetupError: the file is damaged, is no longer there, or the statement takes too long.
        """
        self._until = min(monotonic() + STATEMENT_SECONDS, self._whole)
        try:
            found = self._db.execute(sql, parameters).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeError, MemoryError) as error:
            why = "reading it takes too long" if monotonic() > self._until else str(error)
            raise self.damaged(why) from error
        finally:
            self._until = float("inf")
        if not all(_is_kind(value, kind) for row in found for value, kind in zip(row, kinds, strict=True)):
            raise self.damaged("it holds values of another kind than a graph's")
        return found

    def damaged(self, why: str) -> SetupError:
        return SetupError(f"the graph {self._path} cannot be read: {why}; build it again")

    def _restrict(self) -> None:
        """Before anything of the file is looked at."""
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
        self._db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self._db.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0)
        for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON", f"cache_size = -{CACHE_KIB}"):
            self.rows(f"PRAGMA {pragma}", kinds="")
        self.rows("PRAGMA mmap_size = 0", kinds="I")

    def _check(self) -> None:
        """Whether the file is a graph, with the tables of one and nothing else.

        Raises:
            SetupError: it is not.
        """
        if self.rows("PRAGMA application_id", kinds="i") != [(APPLICATION_ID,)]:
            raise SetupError(f"{self._path} is not a graph; build one with cairn kg build TRIPLES --out FILE")
        expected = _tables()
        stored = self.rows("SELECT type, name, sql FROM sqlite_schema LIMIT 100", kinds="ssT")
        found = {name: (kind, sql) for kind, name, sql in stored if not name.startswith("sqlite_autoindex_")}
        if found != expected or len(stored) > len(expected):
            strange = min(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
            raise self.damaged(f"{strange[:80]!r} in it is not what a graph has")


def _is_kind(value: object, kind: str) -> bool:
    if value is None:
        return kind.isupper()
    fits = type(value) is _KINDS[kind.lower()]
    return fits and (kind not in "sS" or len(str(value)) <= TEXT_CHARS)


@cache
def _tables() -> dict[str, tuple[str, str | None]]:
    """What a build makes, by name: its type and how it was made."""
    db = sqlite3.connect(":memory:")
    try:
        db.executescript(SCHEMA + SPELLING + INDEX)
        rows = db.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    finally:
        db.close()
    return {name: (kind, sql) for kind, name, sql in rows}
