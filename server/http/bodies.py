"""Request bodies of strangers: never longer than allowed, and never slower, however they are sent."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.types import Message, Receive

from server.http.errors import ApiError
from server.http.stream import ClientGone

VALUES: Final = 20_000
"""Members, items and nested objects of one body: a batch of 4,096 queries, or a long conversation with its tools."""
VALUES_AT: Final[Mapping[str, int]] = {"/mcp": 2_000}
DEPTH: Final = 100
_SMALL_BYTES: Final = 64 * 1024
"""Counted at once: that takes less than it takes to ask a thread."""


async def check_shape(body: bytes, *, path: str) -> None:
    """Refuse a body of too many values, or of values too deep in each other.

    Raises:
        ApiError: 400, with what is allowed.
    """
    if b"\0" in body:  # UTF-16 or UTF-32, in which nothing can be counted; UTF-8 JSON holds no NUL
        raise ApiError(
            HTTPStatus.BAD_REQUEST, "The body is not valid UTF-8; encode the JSON as UTF-8.", code="invalid_body"
        )
    most = VALUES_AT.get(path, VALUES)
    if _separators(body) <= DEPTH:
        return
    large = len(body) > _SMALL_BYTES
    values, depth = await asyncio.to_thread(shape, body, most=most) if large else shape(body, most=most)
    if values > most:
        why = f"more than {most:,} values"
    elif depth > DEPTH:
        why = f"values nested more than {DEPTH} deep"
    else:
        return
    raise ApiError(HTTPStatus.BAD_REQUEST, f"The body has {why}; send less in one request.", code="body_too_complex")


def shape(body: bytes, *, most: int) -> tuple[int, int]:
    """How many values JSON text holds, and how deep they lie. What is in strings does not count.

    Args:
        body: UTF-8; of other text, the answer is that of no JSON in particular.
        most: values: once there are more, the depth is no longer looked at.
    """
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = bare.count(b'"') // 2
    if strings > most:
        return strings, 0
    outside = b"".join(bare.split(b'"')[::2])
    values = _separators(outside)
    return values, 0 if values > most else _depth(outside, most_brackets=2 * most)


def _separators(body: bytes) -> int:
    """The number of values at most: each but the first stands behind a comma or begins a list or an object."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _depth(outside: bytes, *, most_brackets: int) -> int:
    depth = deepest = 0
    for byte in outside.translate(None, delete=_NO_BRACKETS)[:most_brackets]:
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")


_DRAINED_BYTES: Final = 32 * 1024 * 1024


async def drain(receive: Receive) -> None:
    """Read and drop the rest of a body that is refused, as far as that is not too much: its client hears why then."""
    left, more = _DRAINED_BYTES, True
    while more and left > 0:
        message = await receive()
        more = message.get("more_body", False)
        left -= len(message.get("body", b""))


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
                f"The body did not arrive within {seconds:g} s; send it right after the headers.",
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
        if message.get("more_body", False):
            await drain(receive_in_time)
        raise ApiError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body is larger than {most_bytes:,} bytes; shorten the question, and put long texts into an index.",
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
