"""A stream of server-sent events, read line by line and never for longer than requested."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import httpx2

from agent.outbound.client import TooLong

_BOM: Final = b"\xef\xbb\xbf"
_DONE: Final = b"[DONE]"
_AT_ONCE: Final = 32
"""Lines that are read before other work has its turn: thousands can come in one piece."""


async def event_data(response: httpx2.Response, *, most_line: int, most_bytes: int) -> AsyncGenerator[bytes]:
    """The data of each event, without the one that says that this is the end.

    Lines are of bytes: those of text would also end at the separators that JSON may hold as they are, such as U+2028.

    Args:
        response: whose body is not read yet.
        most_line: bytes of one line.
        most_bytes: of everything together.

    Raises:
        TooLong: there is more.
    """
    read = 0
    async for line in _lines(response, most_line=most_line, most_bytes=most_bytes):
        read += 1
        if read % _AT_ONCE == 0:
            await asyncio.sleep(0)
        if line.startswith(b"data:") and (data := line[5:].strip()) != _DONE:
            yield data


async def whole_body(response: httpx2.Response, *, most_bytes: int) -> bytes:
    """The body of a response that is no stream after all.

    Raises:
        TooLong: it has more than `most_bytes`.
    """
    pieces: list[bytes] = []
    total = 0
    async for piece in response.aiter_bytes():
        total += len(piece)
        if total > most_bytes:
            raise TooLong(f"more than {most_bytes:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)


async def _lines(response: httpx2.Response, *, most_line: int, most_bytes: int) -> AsyncGenerator[bytes]:
    """Lines that hold something."""
    held: list[bytes] = []
    size = total = 0
    async for piece in response.aiter_bytes():
        total += len(piece)
        if total > most_bytes:
            raise TooLong(f"more than {most_bytes:,} bytes")
        first, *rest = piece.replace(b"\r", b"\n").split(b"\n")
        held.append(first)
        size += len(first)
        for line in rest:
            if size:
                yield b"".join(held).removeprefix(_BOM)
            held, size = [line], len(line)
        if size > most_line:
            raise TooLong(f"a line of more than {most_line:,} bytes")
    yield b"".join(held).removeprefix(_BOM)
