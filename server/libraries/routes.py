"""The addresses of files and libraries: `/v1/files` and `/v1/vector_stores`, as OpenAI's clients use them."""

import errno
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import FastAPI, Path, Query, Request, Response
from starlette.responses import FileResponse

from agent.errors import CorpusError, SourceError
from agent.sources.base import SearchRequest, ask
from agent.sources.corpus.shards import BETWEEN
from server.auth.keys import caller
from server.http.errors import ApiError, bad_request, sentence
from server.libraries.links import keep_link
from server.libraries.manager import LibraryManager
from server.libraries.schema import (
    ChangedLibrary,
    Deleted,
    DocumentPassage,
    DocumentText,
    FileList,
    FileObject,
    FoundPassage,
    FoundPassages,
    LibraryFileList,
    LibraryFileObject,
    LibraryList,
    LibraryObject,
    LibrarySearch,
    NewLibrary,
    NewLink,
    NewMember,
    TextContent,
)
from server.libraries.upload import read_form
from server.store.libraries import FileRow, LibraryRow, Member, MemberState, Page

_SEARCH_SECONDS: Final = 30.0
_UPLOAD: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "purpose": {"type": "string", "description": "Kept, and means nothing."},
                    },
                }
            }
        },
    }
}
_BYTES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The file, as it was uploaded.", "content": {"application/octet-stream": {}}}
}
_STATES: Final[dict[str, MemberState]] = {"in_progress": "waiting", "completed": "indexed", "failed": "failed"}

FileId = Annotated[str, Path(pattern=r"^file-[0-9a-f]{24}$", description="The file's id.")]
LibraryId = Annotated[str, Path(pattern=r"^vs_[0-9a-f]{24}$", description="The library's id.")]
After = Annotated[str, Query(max_length=64, description="`last_id` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=100)]
Order = Literal["asc", "desc"]


def add_libraries(app: FastAPI, manager: LibraryManager) -> None:
    """Add every address of files and libraries."""
    _add_uploads(app, manager)
    _add_files(app, manager)
    _add_library(app, manager)
    _add_members(app, manager)
    _add_search(app, manager)


def _add_uploads(app: FastAPI, manager: LibraryManager) -> None:
    @app.post("/v1/files", openapi_extra=_UPLOAD)
    async def upload_file(request: Request) -> FileObject:
        """Upload a file. It is written to disk while it arrives; put it into a library to have it searched."""
        await manager.check_quota(caller().key)
        try:
            upload = manager.upload()
            try:
                form = await read_form(
                    request.receive,
                    request.headers.get("content-type", ""),
                    upload,
                    most_bytes=manager.quota.file_bytes,
                )
                purpose = form.fields.get("purpose", "")[:64]
                return FileObject.of(await manager.keep(upload, form.name, key_id=caller().key, purpose=purpose))
            finally:
                upload.discard()
        except OSError as error:
            raise _no_room(error) from error

    @app.post("/v1/files/link")
    async def fetch_link(body: NewLink) -> FileObject:
        """Fetch a page of the open web, and keep its text as a file."""
        await manager.check_quota(caller().key)
        try:
            return FileObject.of(await keep_link(manager, body.url, key_id=caller().key))
        except OSError as error:
            raise _no_room(error) from error


def _add_files(app: FastAPI, manager: LibraryManager) -> None:
    @app.get("/v1/files")
    async def list_files(
        purpose: Annotated[str, Query(max_length=64)] = "", after: After = "", limit: Limit = 20, order: Order = "desc"
    ) -> FileList:
        """Your files, the latest first."""
        rows = await manager.rows.files(_page(after, limit, order), key_id=_key(), purpose=purpose)
        return FileList(**_listed([FileObject.of(row) for row in rows], limit))

    @app.get("/v1/files/{file}")
    async def get_file(file: FileId) -> FileObject:
        """One of them."""
        return FileObject.of(await _file(manager, file))

    @app.delete("/v1/files/{file}")
    async def delete_file(file: FileId) -> Deleted:
        """Remove a file, also from every library: no search finds it any more, and its bytes are gone."""
        await manager.delete_file(await _file(manager, file))
        return Deleted(id=file, object="file")

    @app.get("/v1/files/{file}/content", response_model=None, responses=_BYTES)
    async def get_content(file: FileId) -> Response:
        """The file as it was uploaded, to save; a browser shows nothing of it."""
        row = await _file(manager, file)
        path = manager.path_of(row)
        if not path.is_file():
            raise ApiError(HTTPStatus.NOT_FOUND, f"The bytes of {file!r} are gone; delete it.", code="file_not_found")
        named = {"content-disposition": f"attachment; filename*=utf-8''{quote(row.name.rpartition('/')[2])}"}
        return FileResponse(path, media_type="application/octet-stream", headers=named)

    @app.get("/v1/files/{file}/text")
    async def get_text(
        file: FileId,
        start: Annotated[int, Query(ge=0, description="The number of the first passage, from 0.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> DocumentText:
        """What was read of the file, passage by passage, with its headings and pages."""
        row = await _file(manager, file)
        try:
            found = await manager.passages(file)
        except CorpusError as error:
            raise ApiError(HTTPStatus.CONFLICT, sentence(error), code="index_damaged") from error
        fields = ("id", "title", "text", "start", "end", "page")
        shown = [DocumentPassage(**{name: getattr(p, name) for name in fields}) for p in found[start : start + limit]]
        return DocumentText(file=FileObject.of(row), passages=shown, total=len(found))


def _add_library(app: FastAPI, manager: LibraryManager) -> None:
    async def shown(*libraries: LibraryRow) -> list[LibraryObject]:
        counts = await manager.counts(libraries)
        return [
            LibraryObject.of(row, counts[row.id], progress=manager.progress(row.id), trouble=manager.trouble(row.id))
            for row in libraries
        ]

    @app.post("/v1/vector_stores")
    async def create_library(body: NewLibrary) -> LibraryObject:
        """Make a library, and put files into it."""
        files = [await _file(manager, id, param="file_ids") for id in dict.fromkeys(body.file_ids)]
        library = await manager.add_library(body.name, body.metadata or {}, key_id=caller().key)
        for file in files:
            await manager.add(library.id, file)
        return (await shown(library))[0]

    @app.get("/v1/vector_stores")
    async def list_libraries(after: After = "", limit: Limit = 20, order: Order = "desc") -> LibraryList:
        """Your libraries, the latest first."""
        rows = await manager.rows.libraries(_page(after, limit, order), key_id=_key())
        return LibraryList(**_listed(await shown(*rows), limit))

    @app.get("/v1/vector_stores/{library}")
    async def get_library(library: LibraryId) -> LibraryObject:
        """One of them, and how far its files are indexed."""
        return (await shown(await _library(manager, library)))[0]

    @app.post("/v1/vector_stores/{library}")
    async def change_library(library: LibraryId, body: ChangedLibrary) -> LibraryObject:
        """Change its name or its metadata."""
        await _library(manager, library)
        await manager.rows.change_library(library, name=body.name, metadata=body.metadata)
        return (await shown(await _library(manager, library)))[0]

    @app.delete("/v1/vector_stores/{library}")
    async def delete_library(
        library: LibraryId,
        files: Annotated[bool, Query(description="Remove its files, too, also from other libraries.")] = False,
        runs: Annotated[
            bool, Query(description="Remove the runs and reports that searched it, too: they quote it.")
        ] = False,
    ) -> Deleted:
        """Remove a library with its index; its files stay unless `files` says otherwise, as OpenAI has it."""
        await manager.delete_library(await _library(manager, library), files=files, runs=runs)
        return Deleted(id=library, object="vector_store.deleted")


def _add_members(app: FastAPI, manager: LibraryManager) -> None:
    @app.post("/v1/vector_stores/{library}/files")
    async def add_to_library(library: LibraryId, body: NewMember) -> LibraryFileObject:
        """Put a file into a library; it is indexed in the background."""
        await _library(manager, library)
        await manager.add(library, await _file(manager, body.file_id, param="file_id"))
        return LibraryFileObject.of(await _member(manager, library, body.file_id))

    @app.get("/v1/vector_stores/{library}/files")
    async def list_library_files(
        library: LibraryId,
        filter: Literal["in_progress", "completed", "failed", "cancelled"] | None = None,
        after: After = "",
        limit: Limit = 20,
        order: Order = "desc",
    ) -> LibraryFileList:
        """The files of a library, and how each of them came out."""
        await _library(manager, library)
        page = _page(after, limit, order)
        cancelled = filter == "cancelled"  # nothing here ever is
        rows = [] if cancelled else await manager.rows.members(library, page, state=_STATES.get(filter or ""))
        return LibraryFileList(**_listed([LibraryFileObject.of(row) for row in rows], limit))

    @app.get("/v1/vector_stores/{library}/files/{file}")
    async def get_library_file(library: LibraryId, file: FileId) -> LibraryFileObject:
        """One of them."""
        await _library(manager, library)
        return LibraryFileObject.of(await _member(manager, library, file))

    @app.delete("/v1/vector_stores/{library}/files/{file}")
    async def remove_from_library(library: LibraryId, file: FileId) -> Deleted:
        """Take a file out of a library; the file itself stays."""
        await _library(manager, library)
        if not await manager.remove(library, file):
            raise _no_member(library, file)
        return Deleted(id=file, object="vector_store.file.deleted")


def _add_search(app: FastAPI, manager: LibraryManager) -> None:
    @app.post("/v1/vector_stores/{library}/search")
    async def search_library(library: LibraryId, body: LibrarySearch) -> FoundPassages:
        """The passages of a library that fit a query best. No model is involved."""
        await _library(manager, library)
        if body.filters:
            raise bad_request("'filters' are not supported here; leave them out.", param="filters")
        source = await manager.source([library])
        try:
            found = await ask(source, SearchRequest(body.query, body.max_num_results), seconds=_SEARCH_SECONDS)
        except SourceError as error:
            raise ApiError(HTTPStatus.BAD_GATEWAY, sentence(error), code="search_failed") from error
        names: dict[str, str] = {}
        for id in dict.fromkeys(passage.id.partition(BETWEEN)[0] for passage in found.passages):
            row = await manager.rows.file(id, key_id=None)
            names[id] = row.name if row else ""
        data = [
            FoundPassage(
                file_id=passage.id.partition(BETWEEN)[0],
                filename=names[passage.id.partition(BETWEEN)[0]],
                score=passage.score,
                content=[TextContent(text=passage.text)],
                passage=passage.id,
                title=passage.title,
            )
            for passage in found.passages
        ]
        return FoundPassages(search_query=[body.query], data=data)


def _key() -> str | None:
    """The client's key; none for the server's own, and where none is needed: these see every file and library."""
    return caller().key or None


def _page(after: str, limit: int, order: Order) -> Page:
    return Page(after=after, limit=limit + 1, oldest_first=order == "asc")


def _listed(found: Sequence[Any], limit: int) -> dict[str, Any]:
    """A page of a list; one row more than it shows says that there are others."""
    shown = list(found[:limit])
    return {
        "data": shown,
        "first_id": shown[0].id if shown else None,
        "last_id": shown[-1].id if shown else None,
        "has_more": len(found) > limit,
    }


async def _file(manager: LibraryManager, id: str, *, param: str = "file") -> FileRow:
    """The file, if the caller may see it.

    Raises:
        ApiError: there is none.
    """
    row = await manager.rows.file(id, key_id=_key())
    if row is None:
        raise ApiError(HTTPStatus.NOT_FOUND, f"There is no file {id!r}.", param=param, code="file_not_found")
    return row


async def _library(manager: LibraryManager, id: str) -> LibraryRow:
    """The library, if the caller may see it.

    Raises:
        ApiError: there is none.
    """
    return (await manager.allowed([id], key_id=_key()))[0]


async def _member(manager: LibraryManager, library: str, file: str) -> Member:
    row = await manager.rows.member(library, file)
    if row is None:
        raise _no_member(library, file)
    return row


def _no_member(library: str, file: str) -> ApiError:
    message = f"There is no file {file!r} in the library {library!r}."
    return ApiError(HTTPStatus.NOT_FOUND, message, param="file", code="file_not_found")


def _no_room(error: OSError) -> ApiError:
    """A disk that takes no more is said; whatever else is wrong with it is a bug."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        raise error
    return ApiError(
        HTTPStatus.INSUFFICIENT_STORAGE,
        "The server's disk is full; nothing of the file was kept. Try again when its operator has made room.",
        code="disk_full",
    )
