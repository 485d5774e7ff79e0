"""HTTP clients for other people's servers, and their streams of events: bounded where they are read, no redirects.

A client's hook gives each response a body that counts. It decodes what was compressed piece by piece, so a bomb is cut
off at the bound, however the response is read: openai's client, a stream of events, or `aread`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx2

from agent.outbound.address import Address, shown
from agent.outbound.urls import host_of, is_loopback

if TYPE_CHECKING:
    from openai import AsyncOpenAI


_BOM: Final = b"\xef\xbb\xbf"
_DONE: Final = b"[DONE]"
_AT_ONCE: Final = 32
"""Lines that are read before other work has its turn: thousands can come in one piece."""

ANSWER_BYTES: Final = 4 * 1024 * 1024
"""Of a whole answer, decoded: a long list of models has one megabyte."""
STREAM_BYTES: Final = 256 * 1024 * 1024
"""Of a stream of events, decoded. Its reader knows how much it requested, and stops much earlier: see `event_data`."""
ERROR_BYTES: Final = 64 * 1024
"""Of the body of an error. What follows is left out: a sentence is made of it."""
EVENTS: Final = "text/event-stream"
_IDLE_SECONDS: Final = 2.0
"""After which a connection is not used again: many servers, as llama.cpp's, close one after five seconds, and a request
that is just on its way then is lost."""
_PIECE: Final = 64 * 1024
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class TooLong(httpx2.DecodingError):
    """An answer is longer than any that is of use."""


class Redirected(httpx2.RequestError):
    """The server sends requests elsewhere; `target` is where, without secrets."""

    def __init__(self, target: str) -> None:
        super().__init__(f"it redirects to {target}")
        self.target = target


def bounded_client(
    *,
    timeout: float | httpx2.Timeout,
    headers: Mapping[str, str] | None = None,
    params: Mapping[str, str] | None = None,
    most_bytes: int = ANSWER_BYTES,
    transport: httpx2.AsyncBaseTransport | None = None,
    trust_env: bool = True,
) -> httpx2.AsyncClient:
    """A client whose answers end.

    Args:
        timeout: seconds of silence.
        headers: of each request.
        params: of each request.
        most_bytes: of a whole answer, decoded. A request that accepts a stream of events may get `STREAM_BYTES`.
        transport: instead of the network.
        trust_env: whether requests go through the proxies that the environment names.
    """
    return httpx2.AsyncClient(
        headers=dict(headers or {}),
        params=dict(params or {}),
        timeout=timeout,
        limits=httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_SECONDS),
        follow_redirects=False,
        transport=transport,
        trust_env=trust_env,
        event_hooks={"response": [partial(_bound, most_bytes=most_bytes)]},
    )


def openai_client(
    address: Address,
    *,
    api_key: str,
    seconds: float,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> "AsyncOpenAI":
    """The client of `openai` with bounded answers, without redirects and without retries of its own.

    Requests go through the proxies that the environment names; those to this machine never do: a key may be sent here
    unencrypted.

    Args:
        address: of the endpoint; a user and a password in it take the place of the key.
        api_key: never empty: the client wants some.
        seconds: of silence before the server is given up.
        transport: instead of the network.
    """
    from openai import AsyncOpenAI

    here = is_loopback(host_of(address.base))
    return AsyncOpenAI(
        base_url=address.base,
        api_key=api_key,
        timeout=seconds,
        max_retries=0,
        default_headers=address.headers,
        default_query=dict(address.query),
        http_client=bounded_client(timeout=seconds, transport=transport, trust_env=not here),
    )


async def _bound(response: httpx2.Response, *, most_bytes: int) -> None:
    """Give a response a body that is decoded and ends; refuse redirects."""
    if response.status_code in _REDIRECTS:
        raise Redirected(_place(response))
    accepts: str = response.request.headers.get("accept", "")
    most = STREAM_BYTES if EVENTS in accepts else most_bytes
    counted = httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=_Counted(response.stream, most=most),
        request=response.request,
    )
    response.stream = _Decoded(counted, most=most if response.is_success else ERROR_BYTES, cut=not response.is_success)
    for name in ("content-encoding", "content-length"):
        if name in response.headers:
            del response.headers[name]
    if "content-type" in response.headers:  # the charset that it names may be none that makes text
        response.headers["content-type"] = response.headers["content-type"].partition(";")[0].strip()


def _place(response: httpx2.Response) -> str:
    """Scheme, host and port of where a redirect leads; the rest may hold what the request held."""
    location: str = response.headers.get("location", "")
    try:
        target = response.request.url.join(location)
    except (httpx2.InvalidURL, ValueError):
        return "another address"
    where = shown(str(target.copy_with(path="/", query=None, fragment=None)))
    return "".join(c for c in where if c.isprintable())[:200] or "another address"


class _Counted(httpx2.AsyncByteStream):
    """The bytes as they are sent: those that decode to nothing have an end, too."""

    def __init__(self, stream: Any, *, most: int) -> None:
        self._stream, self._most = stream, most

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > self._most:
                raise _too_long(self._most)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Decoded(httpx2.AsyncByteStream):
    """The bytes that were meant, in small pieces: other tasks run between them."""

    def __init__(self, response: httpx2.Response, *, most: int, cut: bool) -> None:
        self._response, self._most, self._cut = response, most, cut

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        left = self._most
        async for piece in self._response.aiter_bytes():
            for at in range(0, len(piece), _PIECE):
                part = piece[at : at + _PIECE]
                if len(part) > left:
                    if not self._cut:
                        raise _too_long(self._most)
                    yield part[:left]
                    return
                left -= len(part)
                yield part
                if len(piece) > _PIECE:
                    await asyncio.sleep(0)

    async def aclose(self) -> None:
        await self._response.aclose()


def _too_long(most: int) -> TooLong:
    return TooLong(f"more than {most / 1024 / 1024:g} MB")


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
