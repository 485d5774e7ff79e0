"""A page of the web as a file: fetched through the guard that pages of search results go through, and kept as text."""

from http import HTTPStatus

from agent.sources.pages.errors import PageError
from server.http.errors import ApiError
from server.libraries.folder import NAME_CHARS, plain_name
from server.libraries.manager import LibraryManager
from server.store.library_rows import FileRow


async def keep_link(manager: LibraryManager, url: str, *, key_id: str) -> FileRow:
    """Fetch a page and keep its text as a Markdown file that knows its address.

    Raises:
        ApiError: it could not be had, or there is no room for it. StoreError, OSError: it cannot be kept.
    """
    try:
        page = await manager.fetcher.page(url)
    except PageError as error:
        message = f"The page could not be fetched: {error}. Save it, and upload the file."
        raise ApiError(HTTPStatus.BAD_GATEWAY, message, code="page_not_fetched", param="url") from error
    title = " ".join(page.title.split())
    name = plain_name((title or page.url).replace("/", "-"))[: NAME_CHARS - 3] + ".md"
    upload = manager.upload()
    try:
        await upload.write((f"# {title}\n\n{page.text}\n" if title else f"{page.text}\n").encode("utf-8", "replace"))
        await upload.finish()
        return await manager.keep(upload, name, key_id=key_id, purpose="user_data", url=page.url)
    finally:
        upload.discard()
