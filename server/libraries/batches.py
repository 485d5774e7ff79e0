"""The addresses of batches: files that are put into a library together, as OpenAI's clients do it."""

from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Path

from server.http.errors import ApiError, bad_request
from server.libraries.access import (
    STATES,
    After,
    InState,
    LibraryId,
    Limit,
    Order,
    listed,
    own_file,
    own_library,
    page_of,
)
from server.libraries.manager import LibraryManager
from server.libraries.schema import BatchObject, LibraryFileList, LibraryFileObject, NewBatch
from server.store.batches import BatchRow

BatchId = Annotated[str, Path(max_length=64, description="The batch's id.")]
_AT = "/v1/vector_stores/{library}/file_batches"


def add_batches(app: FastAPI, manager: LibraryManager) -> None:
    """Add the addresses."""

    async def shown(library: str, id: str) -> BatchObject:
        batch = await own_batch(library, id)
        return BatchObject.of(batch, await manager.batches.counts(batch))

    async def own_batch(library: str, id: str) -> BatchRow:
        await own_library(manager, library)
        batch = await manager.batches.get(id, library=library)
        if batch is None:
            message = f"There is no batch {id!r} in the library {library!r}."
            raise ApiError(HTTPStatus.NOT_FOUND, message, param="batch", code="batch_not_found")
        return batch

    @app.post(_AT)
    async def create_batch(library: LibraryId, body: NewBatch) -> BatchObject:
        """Put files into a library together; they are indexed in the background."""
        await own_library(manager, library)
        if bool(body.file_ids) == bool(body.files):
            raise bad_request("Name the files in 'file_ids', or each with its attributes in 'files'.", param="file_ids")
        wanted = body.wanted
        files = {id: await own_file(manager, id, param="file_ids") for id in wanted}
        id = await manager.add_batch(library, [(files[id], attributes) for id, attributes in wanted.items()])
        return await shown(library, id)

    @app.get(_AT + "/{batch}")
    async def get_batch(library: LibraryId, batch: BatchId) -> BatchObject:
        """One of them, and how far its files are."""
        return await shown(library, batch)

    @app.get(_AT + "/{batch}/files")
    async def list_batch_files(
        library: LibraryId,
        batch: BatchId,
        filter: InState | None = None,
        after: After = "",
        limit: Limit = 20,
        order: Order = "desc",
    ) -> LibraryFileList:
        """Its files, and how each of them came out."""
        await own_batch(library, batch)
        page = page_of(after, limit, order)
        rows = await manager.rows.members(library, page, state=STATES.get(filter or ""), batch=batch)
        return LibraryFileList(**listed([LibraryFileObject.of(row) for row in rows], limit))

    @app.post(_AT + "/{batch}/cancel")
    async def cancel_batch(library: LibraryId, batch: BatchId) -> BatchObject:
        """Index no more of its files; those that are indexed stay, and one that is on its way may come out still."""
        await manager.batches.cancel(await own_batch(library, batch))
        return await shown(library, batch)
