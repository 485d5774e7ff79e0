"""A file in a multipart body, written to disk while it arrives: of a gigabyte, a piece is in memory at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.types import Message, Receive

from agent.sources.pages.errors import PageError
from server.http.bodies import drain
from server.http.errors import ApiError, bad_request
from server.http.stream import ClientGone
from server.libraries.folder import NAME_CHARS, Upload, plain_name
from server.libraries.manager import LibraryManager
from server.store.library_rows import FileRow

FIELD_BYTES: Final = 4096
"""Of a field beside the file."""
FIELDS: Final = 32
HEADER_BYTES: Final = 16 * 1024
"""Of the heads of all parts."""
IDLE_SECONDS: Final = 30.0
"""A client that sends nothing for so long is given up."""
_HOW: Final = "send multipart/form-data with a part named 'file' that has a filename"


@dataclass
class Form:
    """What a body held: the file is in the upload that was given."""

    name: str = ""
    fields: dict[str, str] = field(default_factory=dict[str, str])


class _Reader:
    """Collects what the parser finds: fields, and the bytes of the file, which the caller writes."""

    def __init__(self) -> None:
        self.form = Form()
        self.data: list[bytes] = []
        """Bytes of the file since the last look."""
        self.whole = self.has_file = False
        self._headers: dict[str, str] = {}
        self._header = [bytearray(), bytearray()]
        self._head_bytes = 0
        self._field = ""
        self._value = bytearray()
        self._in_file = False

    def callbacks(self) -> dict[str, Callable[..., None]]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": partial(self._add_header, 0),
            "on_header_value": partial(self._add_header, 1),
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._add,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def _begin(self) -> None:
        self._headers, self._value, self._in_file = {}, bytearray(), False

    def _add_header(self, which: int, data: bytes, start: int, end: int) -> None:
        self._head_bytes += end - start
        if self._head_bytes > HEADER_BYTES:
            raise bad_request(f"The heads of the body's parts are larger than {HEADER_BYTES:,} bytes; {_HOW}.")
        self._header[which] += data[start:end]

    def _end_header(self) -> None:
        name, value = (bytes(part).decode("latin-1") for part in self._header)
        self._headers[name.strip().lower()] = value
        self._header = [bytearray(), bytearray()]

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", "").encode("latin-1"))
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        if self._field == "file" and b"filename" in options:
            if self.has_file:
                raise bad_request("The body has two files; send one in each request.", param="file")
            self.has_file = self._in_file = True
            self.form.name = plain_name(options[b"filename"].decode("utf-8", "replace"))
        elif len(self.form.fields) >= FIELDS:
            raise bad_request(f"The body has more than {FIELDS} fields; {_HOW}.")

    def _add(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self.data.append(data[start:end])
            return
        self._value += data[start:end]
        if len(self._value) > FIELD_BYTES:
            raise bad_request(f"The field {self._field!r} is longer than {FIELD_BYTES:,} bytes; {_HOW}.")

    def _end(self) -> None:
        if not self._in_file:
            self.form.fields[self._field] = bytes(self._value).decode("utf-8", "replace")

    def _finish(self) -> None:
        self.whole = True


async def read_form(receive: Receive, content_type: str, upload: Upload, *, most_bytes: int) -> Form:
    """Read a multipart body, and write its file.

    Args:
        receive: the body, not read yet.
        content_type: of the request.
        upload: takes the bytes of the file.
        most_bytes: of the file.

    Raises:
        ApiError: it is no such body, or the file is too large.
        ClientGone: the client left in the middle.
        OSError: the disk is full.
    """
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= 200:
        raise bad_request(f"The body is not a form; {_HOW}.", code="invalid_body")
    reader = _Reader()
    parser: Any = MultipartParser(boundary, reader.callbacks())  # pyright: ignore[reportArgumentType]
    more = True
    while more:
        message = await _next(receive)
        more = message.get("more_body", False)
        try:
            parser.write(message.get("body", b""))
        except MultipartParseError as error:
            raise bad_request(f"The body cannot be read as a form ({error}); {_HOW}.", code="invalid_body") from error
        data, reader.data = b"".join(reader.data), []
        if upload.bytes + len(data) > most_bytes:
            if more:
                await drain(partial(_next, receive))
            raise ApiError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The file is larger than {most_bytes:,} bytes; split it, or ask the operator for a larger file_bytes.",
                code="file_too_large",
                param="file",
            )
        await upload.write(data)
    if not reader.whole:
        raise bad_request("The body ends in the middle of a part; send it again.", code="invalid_body")
    if not reader.has_file or not reader.form.name:
        raise bad_request(f"There is no file in the body; {_HOW}.", param="file", code="missing_required_parameter")
    await upload.finish()
    return reader.form


async def _next(receive: Receive) -> Message:
    """The next piece of the body.

    Raises:
        ApiError: it does not come. ClientGone: the client left.
    """
    try:
        async with asyncio.timeout(IDLE_SECONDS):
            message = await receive()
    except TimeoutError:
        raise ApiError(
            HTTPStatus.REQUEST_TIMEOUT,
            f"No more of the file came for {IDLE_SECONDS:g} s; send it again.",
            code="body_too_slow",
            headers={"connection": "close"},
        ) from None
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message


async def keep_link(manager: LibraryManager, url: str, *, key_id: str) -> FileRow:
    """Fetch a page and keep its text as a Markdown file that knows its address.

    It goes through the guard that pages of search results go through.

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
