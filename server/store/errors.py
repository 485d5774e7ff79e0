"""What can go wrong with the database, as one error with a kind and a sentence that gives a hint."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Literal

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

StoreErrorKind = Literal["full", "locked", "unreachable", "refused", "newer", "unreadable", "broken"]

_HINTS: Final[dict[StoreErrorKind, str]] = {
    "full": "the disk is full; free some space, or keep less (CAIRN_STORE_RUNS, CAIRN_STORE_DAYS)",
    "locked": "another program is using it; end that program, or name another file with CAIRN_STORE",
    "unreachable": "it cannot be reached; check the address and that the database runs",
    "refused": "it rejected what was written; please report this as a bug, with the server's log",
    "newer": "a newer Cairn wrote it; update this one, or name another store with CAIRN_STORE",
    "unreadable": "it holds a run that this Cairn cannot read; update it, or delete that run",
    "broken": "it cannot be used; name another store with CAIRN_STORE, or restore it from a copy",
}
_SQLITE: Final[dict[int, StoreErrorKind]] = {
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_CANTOPEN: "unreachable",
    sqlite3.SQLITE_READONLY: "unreachable",
    sqlite3.SQLITE_PERM: "unreachable",
    sqlite3.SQLITE_TOOBIG: "refused",
    sqlite3.SQLITE_CONSTRAINT: "refused",
    sqlite3.SQLITE_MISMATCH: "refused",
}
_POSTGRES: Final[dict[str, StoreErrorKind]] = {
    "53100": "full",
    "53200": "full",
    "55P03": "locked",
    "40P01": "locked",
    "40001": "locked",
    "57014": "locked",
    "08": "unreachable",
    "28": "unreachable",
    "3D": "unreachable",
    "53300": "unreachable",
    "57P": "unreachable",
    "22": "refused",
    "23": "refused",
}
"""SQLSTATE, or how it begins."""


class StoreError(Exception):
    """The store could not be read or written. What was not stored is still where it was."""

    def __init__(self, kind: StoreErrorKind, detail: str = "") -> None:
        self.kind: StoreErrorKind = kind
        self.hint = f"the store failed: {_HINTS[kind]}"
        """For clients; the detail is the operator's, who finds it in the log."""
        super().__init__(self.hint + (f" ({detail})" if detail else ""))


@asynccontextmanager
async def typed_errors() -> AsyncGenerator[None]:
    """Whatever a database raises inside leaves as `StoreError`."""
    try:
        yield
    except DBAPIError as error:
        raise _of_driver(error) from error
    except PoolTimeout as error:
        raise StoreError("locked", _first_line(error)) from error
    except (UnicodeError, OverflowError) as error:  # text, or a number, that no column takes
        raise StoreError("refused", _first_line(error)) from error
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise StoreError("broken", _first_line(error)) from error
    except (OSError, TimeoutError) as error:
        raise StoreError("unreachable", _first_line(error)) from error


def _of_driver(error: DBAPIError) -> StoreError:
    cause: BaseException | None = error.orig
    seen: list[BaseException] = []
    while cause is not None and cause not in seen:
        seen.append(cause)
        if isinstance(cause, sqlite3.Error):
            code: int = getattr(cause, "sqlite_errorcode", 0) & 0xFF
            return StoreError(_SQLITE.get(code, "broken"), _first_line(cause))
        if state := str(getattr(cause, "sqlstate", "") or ""):
            return StoreError(_of_state(state), _first_line(cause))
        cause = cause.__cause__
    return StoreError("unreachable" if error.connection_invalidated else "broken", _first_line(error.orig or error))


def _of_state(state: str) -> StoreErrorKind:
    for begins, kind in _POSTGRES.items():
        if state.startswith(begins):
            return kind
    return "broken"


def _first_line(error: BaseException) -> str:
    """Without the statement and its values, which hold questions of users."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
