"""How much JSON a request's body may hold, counted on its bytes: what is refused here is never parsed.

Four megabytes hold two million numbers or as many wrong members: reading them, and a sentence for each, takes seconds
in which no other client is answered.
"""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from server.http.errors import ApiError

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
        raise ApiError(HTTPStatus.BAD_REQUEST, "The body is no UTF-8; send JSON as UTF-8.", code="invalid_body")
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
    raise ApiError(HTTPStatus.BAD_REQUEST, f"The body holds {why}; send less in one request.", code="body_too_complex")


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
