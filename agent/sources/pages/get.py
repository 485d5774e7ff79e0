"""One guarded GET: redirects by hand, each one checked, and an answer that is bounded while it comes in.

No client stands between: nothing adds a cookie, a proxy, a password or a redirect of its own.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import httpx2

from agent.sources.http import USER_AGENT
from agent.sources.pages.errors import PageError
from agent.sources.pages.guard import Guard

MAX_BYTES: Final = 5_000_000
"""Of one page: decoded, and as it comes over the wire."""
MAX_REDIRECTS: Final = 3
CODINGS: Final = frozenset({"", "identity", "gzip", "deflate"})
"""One of them, once: codings inside each other can make much work out of little."""
HEADERS: Final[Mapping[str, str]] = {
    "user-agent": USER_AGENT,
    "accept": "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,application/pdf;q=0.8",
    "accept-encoding": "gzip, deflate",
    "accept-language": "en,*;q=0.5",
}

_TIMEOUT: Final = {"connect": 5.0, "read": 10.0, "write": 5.0, "pool": 10.0}
"""Seconds of one step; the caller bounds the whole."""

Before = Callable[[httpx2.URL], Awaitable[None]]


@dataclass(frozen=True)
class Got:
    """A whole answer, decoded from its content coding, whatever its status."""

    url: httpx2.URL
    """Where it stood, after redirects."""
    status: int
    content_type: str
    """Lower case, without parameters."""
    charset: str
    body: bytes
    cut: bool = False
    """Whether it was longer than its bound."""
    cached: bool = False


async def _nothing(url: httpx2.URL) -> None:
    return None


class Getter:
    """Gets URLs through a transport that is guarded."""

    def __init__(self, guard: Guard, transport: httpx2.AsyncBaseTransport) -> None:
        self._guard = guard
        self._transport = transport

    async def get(
        self, url: str, *, before: Before = _nothing, cut_bytes: int | None = None, types: frozenset[str] | None = None
    ) -> Got:
        """Get a URL, following at most `MAX_REDIRECTS` redirects.

        Args:
            url: read by the guard, like each redirect's.
            before: awaited before each request; it may refuse.
            cut_bytes: a longer answer is cut; None: one that is longer than `MAX_BYTES` is an error.
            types: content types; the body of another one is not read. None: any.

        Raises:
            PageError: it could not be had.
        """
        at = self._guard.url(url)
        for _ in range(MAX_REDIRECTS + 1):
            await before(at)
            response = await self._send(at)
            try:
                location = response.headers.get("location", "")
                if response.status_code not in {301, 302, 303, 307, 308} or not location:
                    return await self._read(at, response, cut_bytes, types)
            finally:
                await response.aclose()
            at = self._guard.redirect(at, location)
        raise PageError(f"it redirects more than {MAX_REDIRECTS} times", kind="refused")

    async def _send(self, url: httpx2.URL) -> httpx2.Response:
        request = httpx2.Request("GET", url, headers=HEADERS, extensions={"timeout": _TIMEOUT})
        try:
            return await self._transport.handle_async_request(request)
        except httpx2.TimeoutException as error:
            raise PageError(f"{url.host} does not answer in time", kind="slow") from error
        except (httpx2.HTTPError, OSError) as error:
            raise PageError(f"{url.host} cannot be reached", kind="unreachable") from error

    async def _read(
        self, url: httpx2.URL, response: httpx2.Response, cut_bytes: int | None, types: frozenset[str] | None
    ) -> Got:
        content_type, _, rest = response.headers.get("content-type", "").partition(";")
        content_type = content_type.strip().lower()
        got = Got(url, response.status_code, content_type, _charset(rest), b"")
        if got.status != 200:
            return got
        if types is not None and content_type not in types:
            raise PageError(f"it is {content_type[:40] or 'of no type'}, not a text that can be read", kind="type")
        if response.headers.get("content-encoding", "").strip().lower() not in CODINGS:
            raise PageError("its compression is not supported", kind="type")
        body, cut = await _bounded(response, cut_bytes)
        cached = bool(response.extensions.get("caching", {}).get("from_cache"))
        return Got(url, got.status, content_type, got.charset, body, cut, cached)


async def _bounded(response: httpx2.Response, cut_bytes: int | None) -> tuple[bytes, bool]:
    limit = MAX_BYTES if cut_bytes is None else cut_bytes
    body = bytearray()
    try:
        if int(response.headers.get("content-length", "0")) > MAX_BYTES and cut_bytes is None:
            raise PageError(f"it is longer than {MAX_BYTES // 1_000_000} MB", kind="size")
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > limit or response.num_bytes_downloaded > MAX_BYTES:
                if cut_bytes is None:
                    raise PageError(f"it is longer than {MAX_BYTES // 1_000_000} MB", kind="size")
                return bytes(body[:limit]), True
    except httpx2.TimeoutException as error:
        raise PageError("it stopped in the middle", kind="slow") from error
    except httpx2.DecodingError as error:
        raise PageError("it cannot be decompressed", kind="type") from error
    except (httpx2.HTTPError, OSError, ValueError) as error:
        raise PageError("the connection broke in the middle", kind="unreachable") from error
    return bytes(body), False


def _charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()[:40]
    return ""
