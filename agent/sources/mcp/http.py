"""An MCP server behind a URL (streamable HTTP), over a client that bounds each answer and notes how each call ended."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from agent.sources.http import MAX_BYTES, USER_AGENT

CONNECT_SECONDS: Final = 10.0
SPARE_SECONDS: Final = 2.0
"""Who waits for the answer gives up first."""


@dataclass
class HttpCallOutcome:
    """How the last request of a call, or of a connection that is opened, ended."""

    status: int = 0
    """Of its answer; 0 where there was none."""
    why: str = ""
    """What is known of a failure; empty where it is none."""

    @property
    def broke(self) -> bool:
        return bool(self.why)


_CALL: Final[ContextVar[HttpCallOutcome | None]] = ContextVar("call", default=None)
"""Of the call that a request belongs to. The SDK sends the requests of a call in its caller's context, and gives no
other way to know whose they are: a call never hears the id of its request."""


class HttpTransport:
    """The URL of a server, for one connection."""

    def __init__(self, url: str, *, key: str, seconds: float) -> None:
        """Send nothing yet.

        Args:
            url: of the server.
            key: sent as a bearer token to it alone; empty: none.
            seconds: that it may be silent for.
        """
        self._url = url
        self._headers = {"user-agent": USER_AGENT, **({"authorization": f"Bearer {key}"} if key else {})}
        self._timeout = httpx2.Timeout(seconds + SPARE_SECONDS, connect=min(seconds, CONNECT_SECONDS))
        self._bounded = _Bounded()

    @property
    def broke(self) -> bool:
        """Whether it could not be opened."""
        return self._bounded.opening.broke

    @property
    def why(self) -> str:
        """What is known of that."""
        return self._bounded.opening.why

    @property
    def status(self) -> int:
        """Of the last answer while it was opened; 0 before there was one."""
        return self._bounded.opening.status

    @contextmanager
    def call(self) -> Generator[HttpCallOutcome]:
        """Note how the requests that are made inside end."""
        outcome = HttpCallOutcome()
        token = _CALL.set(outcome)
        try:
            yield outcome
        finally:
            _CALL.reset(token)

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        """Connect, and say good-bye."""
        client = httpx2.AsyncClient(
            transport=self._bounded, headers=self._headers, timeout=self._timeout, trust_env=False
        )
        async with client, streamable_http_client(self._url, http_client=client) as streams:
            yield streams


class _Bounded(httpx2.AsyncHTTPTransport):
    """Answers of at most `MAX_BYTES`, sent as they are: a packed one has no bound."""

    def __init__(self) -> None:
        super().__init__(trust_env=False)
        self.opening = HttpCallOutcome()
        """Of requests that belong to no call."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        asks = request.method == "POST"  # a GET only waits for news, and may end at any time
        try:
            response = await super().handle_async_request(request)
        except httpx2.TransportError as error:
            late = isinstance(error, httpx2.TimeoutException)
            why = "it did not answer in time" if late else f"it cannot be reached or hung up ({type(error).__name__})"
            self._note(asks, 408 if late else 0, why)
            raise
        self._note(asks, response.status_code, f"it answered {response.status_code}" if response.is_error else "")
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            self._note(asks, 0, "it sent a packed answer, which was not requested")
            raise httpx2.RemoteProtocolError("packed", request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream), "an async transport has async streams"
        response.stream = self._counted(response.stream, asks)
        return response

    def _note(self, asks: bool, status: int, why: str) -> None:
        if asks:
            outcome = _CALL.get() or self.opening
            outcome.status, outcome.why = status, why

    def _counted(self, stream: httpx2.AsyncByteStream, asks: bool) -> httpx2.AsyncByteStream:
        return _Counted(stream, lambda: self._note(asks, 0, f"it sent more than {MAX_BYTES >> 20} MB"))


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, too_long: Callable[[], None]) -> None:
        self._stream = stream
        self._too_long = too_long

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for part in self._stream:
            count += len(part)
            if count > MAX_BYTES:
                self._too_long()
                raise httpx2.RemoteProtocolError("too long")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
