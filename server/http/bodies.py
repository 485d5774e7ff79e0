"""Request bodies of strangers: never longer than allowed, and never slower, however they are sent."""

import asyncio
from http import HTTPStatus
from typing import Final

from starlette.types import Message, Receive

from server.http.errors import ApiError
from server.http.stream import ClientGone

_DRAINED_BYTES: Final = 32 * 1024 * 1024


def capped(receive: Receive, *, most_bytes: int, seconds: float) -> Receive:
    """A body that is larger, or not there in time, raises `ApiError` where it is read.

    The rest of a body that is too large is read and dropped, so that its client hears the answer. What is received
    after the body (that the client left) may take any time.
    """
    total = 0
    whole = False
    until: float | None = None

    async def receive_in_time() -> Message:
        nonlocal until
        now = asyncio.get_running_loop().time()
        until = now + seconds if until is None else until
        try:
            async with asyncio.timeout_at(until):
                return await receive()
        except TimeoutError:
            raise ApiError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"The body was not there after {seconds:g} s; send it at once.",
                code="body_too_slow",
                headers={"connection": "close"},
            ) from None

    async def receive_capped() -> Message:
        nonlocal total, whole
        if whole:
            return await receive()
        message = await receive_in_time()
        total += len(message.get("body", b""))
        if total <= most_bytes:
            whole = not message.get("more_body", False)
            return message
        while message.get("more_body", False) and total <= most_bytes + _DRAINED_BYTES:
            message = await receive_in_time()
            total += len(message.get("body", b""))
        raise ApiError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body is larger than {most_bytes:,} bytes; send a shorter question, and long texts as an index.",
            code="body_too_large",
        )

    return receive_capped


async def read_whole(receive: Receive) -> bytes:
    """Read the body before anything is done for it.

    Raises:
        ApiError: as the `receive` of `capped`.
        ClientGone: the client went away while it sent.
    """
    pieces: list[bytes] = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(pieces)


def again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that was read already, and then what comes after it."""
    left: bytes | None = body

    async def receive_again() -> Message:
        nonlocal left
        if left is None:
            return await receive()
        message: Message = {"type": "http.request", "body": left, "more_body": False}
        left = None  # it is held no longer than its request needs it
        return message

    return receive_again
