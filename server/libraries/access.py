"""What the addresses of files and libraries share: the caller's own rows, and the pages of lists."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import Path, Query

from server.auth.keys import caller
from server.http.errors import ApiError
from server.libraries.manager import LibraryManager, no_file
from server.store.library_rows import FileRow, LibraryRow, Member, MemberState, Page

STATES: Final[dict[str, MemberState]] = {
    "in_progress": "waiting",
    "completed": "indexed",
    "failed": "failed",
    "cancelled": "cancelled",
}
"""Of the files in libraries, by OpenAI's names."""

FileId = Annotated[str, Path(max_length=64, description="The file's id.")]
LibraryId = Annotated[str, Path(max_length=64, description="The library's id.")]
After = Annotated[str, Query(max_length=64, description="`last_id` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=100)]
FileLimit = Annotated[int, Query(ge=1, le=10_000, description="As many as OpenAI's list of files allows.")]
Order = Literal["asc", "desc"]
InState = Literal["in_progress", "completed", "failed", "cancelled"]


def key_of_caller() -> str | None:
    """The client's key; none for the server's own, and where none is needed: these see every file and library."""
    return caller().key or None


def page_of(after: str, limit: int, order: Order) -> Page:
    return Page(after=after, limit=limit + 1, oldest_first=order == "asc")


def listed(found: Sequence[Any], limit: int) -> dict[str, Any]:
    """A page of a list; one row more than it shows says that there are others."""
    shown = list(found[:limit])
    return {
        "data": shown,
        "first_id": shown[0].id if shown else None,
        "last_id": shown[-1].id if shown else None,
        "has_more": len(found) > limit,
    }


async def own_file(manager: LibraryManager, id: str, *, param: str = "file") -> FileRow:
    """The file, if the caller may see it.

    Raises:
        ApiError: there is none.
    """
    row = await manager.rows.file(id, key_id=key_of_caller())
    if row is None:
        raise no_file(id, param=param)
    return row


async def own_library(manager: LibraryManager, id: str) -> LibraryRow:
    """The library, if the caller may see it.

    Raises:
        ApiError: there is none.
    """
    return (await manager.allowed([id], key_id=key_of_caller()))[0]


async def own_member(manager: LibraryManager, library: str, file: str) -> Member:
    row = await manager.rows.member(library, file)
    if row is None:
        raise no_member(library, file)
    return row


def no_member(library: str, file: str) -> ApiError:
    message = f"There is no file {file!r} in the library {library!r}."
    return ApiError(HTTPStatus.NOT_FOUND, message, param="file", code="file_not_found")
