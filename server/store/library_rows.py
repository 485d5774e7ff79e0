"""Files, libraries and what is in them, as the rest of the server sees them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from sqlalchemy import Row

from server.store.serial import read_text

MemberState = Literal["waiting", "indexed", "failed", "cancelled", "removed"]
Attributes = Mapping[str, str | int | float | bool]
"""What searches may filter files by."""
SHARD_BYTES: Final = 16 << 20
"""Of the files that are indexed together: one file more, or less, means that these are read again."""
SHARD_FILES: Final = 500


@dataclass(frozen=True)
class FileRow:
    """One uploaded file."""

    id: str
    name: str
    bytes: int
    key_id: str = ""
    purpose: str = ""
    url: str = ""
    """Where it was fetched, if it was."""
    created: float = 0.0
    """Seconds since 1970."""


class DeletedFileError(LookupError):
    """A file cannot be put into a library: it was deleted."""


@dataclass(frozen=True)
class LibraryRow:
    """One library."""

    id: str
    name: str
    key_id: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    created: float = 0.0


@dataclass(frozen=True)
class Member:
    """One file in a library."""

    library: str
    file: str
    name: str
    shard: int
    state: MemberState
    why: str
    """Why it gives no passages, or not all of them."""
    passages: int
    bytes: int
    url: str
    added: float
    attributes: Attributes = field(default_factory=dict[str, str | int | float | bool])


@dataclass(frozen=True)
class Counts:
    """How many files of a library are in each state, and how large they are."""

    waiting: int = 0
    indexed: int = 0
    failed: int = 0
    cancelled: int = 0
    bytes: int = 0

    @property
    def total(self) -> int:
        return self.waiting + self.indexed + self.failed + self.cancelled


@dataclass(frozen=True)
class Page:
    """Which rows of a list."""

    after: str = ""
    """The id of the last row of the page before."""
    limit: int = 20
    oldest_first: bool = False


Built = Literal["as it is to be", "of too little", "of what is gone"]
"""Whether a shard holds what it should: another server may have built it while this one did, of other files."""


def file_of(row: Row[Any]) -> FileRow:
    return FileRow(
        id=row.id,
        name=read_text(row.name),
        bytes=row.bytes,
        key_id=row.key_id,
        purpose=read_text(row.purpose),
        url=read_text(row.url),
        created=row.created,
    )


def library_of(row: Row[Any]) -> LibraryRow:
    kept = {name: str(value) for name, value in read_object(row.metadata).items()}
    return LibraryRow(id=row.id, name=read_text(row.name), key_id=row.key_id, metadata=kept, created=row.created)


def read_object(stored: str) -> dict[str, Any]:
    """An object of the store; what another version or a broken one wrote is empty."""
    try:
        found: Any = json.loads(read_text(stored))
    except ValueError:
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def member_of(row: Row[Any]) -> Member:
    return Member(
        library=row.library,
        file=row.file,
        name=read_text(row.name or ""),
        shard=row.shard,
        state=row.state,
        why=read_text(row.why),
        passages=row.passages,
        bytes=row.bytes,
        url=read_text(row.url or ""),
        added=row.added,
        attributes=read_object(row.attributes),
    )
