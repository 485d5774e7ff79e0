"""The addresses of files and libraries: `/v1/files` and `/v1/vector_stores`, as OpenAI's clients use them."""

import errno
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import FastAPI, Query, Request, Response
from starlette.responses import FileResponse

from agent.errors import CorpusError, SourceError
from agent.evidence import Passage
from agent.sources.base import SearchRequest, ask
from agent.sources.corpus.documents import StoredPassage
from agent.sources.corpus.shards import BETWEEN
from server.auth.keys import Keys, caller
from server.http.errors import ApiError, bad_request, sentence
from server.libraries.access import (
    STATES,
    After,
    FileId,
    FileLimit,
    InState,
    LibraryId,
    Limit,
    Order,
    key_of_caller,
    listed,
    no_member,
    own_file,
    own_library,
    own_member,
    page_of,
)
from server.libraries.batches import add_batches
from server.libraries.manager import LibraryManager
from server.libraries.schema import (
    ChangedLibrary,
    ChangedMember,
    Deleted,
    DocumentPassage,
    DocumentText,
    FileContents,
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
from server.libraries.upload import keep_link, read_form
from server.store.deleted import UnknownPlaceError
from server.store.library_rows import LibraryRow

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


def add_libraries(app: FastAPI, manager: LibraryManager, keys: Keys) -> None:
    """Add every address of files and libraries; searches count for the keys."""
    app.add_exception_handler(UnknownPlaceError, _on_unknown_place)
    add_batches(app, manager)
    _add_uploads(app, manager)
    _add_files(app, manager)
    _add_library(app, manager)
    _add_members(app, manager)
    _add_search(app, manager, keys)


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
        purpose: Annotated[str, Query(max_length=64)] = "",
        after: After = "",
        limit: FileLimit = 20,
        order: Order = "desc",
    ) -> FileList:
        """Your files, the latest first."""
        rows = await manager.rows.files(page_of(after, limit, order), key_id=key_of_caller(), purpose=purpose)
        return FileList(**listed([FileObject.of(row) for row in rows], limit))

    @app.get("/v1/files/{file}")
    async def get_file(file: FileId) -> FileObject:
        """One of them."""
        return FileObject.of(await own_file(manager, file))

    @app.delete("/v1/files/{file}")
    async def delete_file(file: FileId) -> Deleted:
        """Remove a file, also from every library: no search finds it any more, and its bytes are gone."""
        await manager.delete_file(await own_file(manager, file))
        return Deleted(id=file, object="file")

    @app.get("/v1/files/{file}/content", response_model=None, responses=_BYTES)
    async def get_content(file: FileId) -> Response:
        """The file as it was uploaded, to save; a browser shows nothing of it."""
        row = await own_file(manager, file)
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
        row = await own_file(manager, file)
        found = await _passages(manager, file)
        fields = ("id", "title", "text", "start", "end", "page", "page_breaks")
        shown = [
            DocumentPassage.model_validate({name: getattr(passage, name) for name in fields})
            for passage in found[start : start + limit]
        ]
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
        files = [await own_file(manager, id, param="file_ids") for id in dict.fromkeys(body.file_ids)]
        library = await manager.add_library(body.name, body.metadata or {}, key_id=caller().key)
        for file in files:
            await manager.add(library.id, file)
        return (await shown(library))[0]

    @app.get("/v1/vector_stores")
    async def list_libraries(after: After = "", limit: Limit = 20, order: Order = "desc") -> LibraryList:
        """Your libraries, the latest first."""
        rows = await manager.rows.libraries(page_of(after, limit, order), key_id=key_of_caller())
        return LibraryList(**listed(await shown(*rows), limit))

    @app.get("/v1/vector_stores/{library}")
    async def get_library(library: LibraryId) -> LibraryObject:
        """One of them, and how far its files are indexed."""
        return (await shown(await own_library(manager, library)))[0]

    @app.post("/v1/vector_stores/{library}")
    async def change_library(library: LibraryId, body: ChangedLibrary) -> LibraryObject:
        """Change its name or its metadata."""
        await own_library(manager, library)
        await manager.rows.change_library(library, name=body.name, metadata=body.metadata)
        return (await shown(await own_library(manager, library)))[0]

    @app.delete("/v1/vector_stores/{library}")
    async def delete_library(
        library: LibraryId,
        files: Annotated[bool, Query(description="Remove its files, too, also from other libraries.")] = False,
        runs: Annotated[
            bool, Query(description="Remove the runs and reports that searched it, too: they quote it.")
        ] = False,
    ) -> Deleted:
        """Remove a library with its index; its files stay unless `files` says otherwise, as OpenAI has it."""
        await manager.delete_library(await own_library(manager, library), files=files, runs=runs)
        return Deleted(id=library, object="vector_store.deleted")


def _add_members(app: FastAPI, manager: LibraryManager) -> None:
    @app.post("/v1/vector_stores/{library}/files")
    async def add_to_library(library: LibraryId, body: NewMember) -> LibraryFileObject:
        """Put a file into a library; it is indexed in the background."""
        await own_library(manager, library)
        await manager.add(library, await own_file(manager, body.file_id, param="file_id"), body.attributes)
        return LibraryFileObject.of(await own_member(manager, library, body.file_id))

    @app.get("/v1/vector_stores/{library}/files")
    async def list_library_files(
        library: LibraryId,
        filter: InState | None = None,
        after: After = "",
        limit: Limit = 20,
        order: Order = "desc",
    ) -> LibraryFileList:
        """The files of a library, and how each of them came out."""
        await own_library(manager, library)
        rows = await manager.rows.members(library, page_of(after, limit, order), state=STATES.get(filter or ""))
        return LibraryFileList(**listed([LibraryFileObject.of(row) for row in rows], limit))

    @app.get("/v1/vector_stores/{library}/files/{file}")
    async def get_library_file(library: LibraryId, file: FileId) -> LibraryFileObject:
        """One of them."""
        await own_library(manager, library)
        return LibraryFileObject.of(await own_member(manager, library, file))

    @app.get("/v1/vector_stores/{library}/files/{file}/content")
    async def get_library_file_content(library: LibraryId, file: FileId) -> FileContents:
        """What was read of it, passage by passage."""
        await own_library(manager, library)
        await own_member(manager, library, file)
        return FileContents(data=[TextContent(text=passage.text) for passage in await _passages(manager, file)])

    @app.post("/v1/vector_stores/{library}/files/{file}")
    async def change_library_file(library: LibraryId, file: FileId, body: ChangedMember) -> LibraryFileObject:
        """Change the attributes of a file in a library."""
        await own_library(manager, library)
        await own_member(manager, library, file)
        await manager.add(library, await own_file(manager, file), body.attributes or {})
        return LibraryFileObject.of(await own_member(manager, library, file))

    @app.delete("/v1/vector_stores/{library}/files/{file}")
    async def remove_from_library(library: LibraryId, file: FileId) -> Deleted:
        """Take a file out of a library; the file itself stays."""
        await own_library(manager, library)
        if not await manager.remove(library, file):
            raise no_member(library, file)
        return Deleted(id=file, object="vector_store.file.deleted")


async def _passages(manager: LibraryManager, file: str) -> list[StoredPassage]:
    try:
        return await manager.passages(file)
    except CorpusError as error:
        raise ApiError(HTTPStatus.CONFLICT, sentence(error), code="index_damaged") from error


def _add_search(app: FastAPI, manager: LibraryManager, keys: Keys) -> None:
    @app.post("/v1/vector_stores/{library}/search")
    async def search_library(library: LibraryId, body: LibrarySearch) -> FoundPassages:
        """The passages of a library that fit a query best, or one of several. No model is involved."""
        await own_library(manager, library)
        keys.may_search(len(body.queries))
        source = await manager.source([library], filters={library: body.filters} if body.filters else {})
        best: dict[str, Passage] = {}
        for query in body.queries:
            try:
                found = await ask(source, SearchRequest(query, body.max_num_results), seconds=_SEARCH_SECONDS)
            except SourceError as error:
                raise ApiError(HTTPStatus.BAD_GATEWAY, sentence(error), code="search_failed") from error
            finally:
                keys.searched(1, 0.0)
            for passage in found.passages:
                best[passage.id] = max(passage, best.get(passage.id, passage), key=_score)
        passages = sorted(best.values(), key=_score, reverse=True) if len(body.queries) > 1 else best.values()
        members = {id: await manager.rows.member(library, id) for id in dict.fromkeys(map(_file_of, best.values()))}
        shown = [FoundPassage.of(passage, member) for passage in passages if (member := members[_file_of(passage)])]
        return FoundPassages(search_query=list(body.queries), data=shown[: body.max_num_results])


def _score(passage: Passage) -> float:
    return passage.score


def _file_of(passage: Passage) -> str:
    return passage.id.partition(BETWEEN)[0]


async def _on_unknown_place(_: Request, _error: Exception) -> Response:
    message = "The list cannot continue after this id, which it never had, or lost long ago; begin without 'after'."
    return bad_request(message, param="after").response()


def _no_room(error: OSError) -> ApiError:
    """A disk that takes no more is said; whatever else is wrong with it is a bug."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        raise error
    return ApiError(
        HTTPStatus.INSUFFICIENT_STORAGE,
        "The server's disk is full; nothing of the file was kept. Try again when its operator has made room.",
        code="disk_full",
    )
