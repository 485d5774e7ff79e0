"""One connection to an MCP server: opened by the first search, kept, and opened again after it broke.

A task of its own holds it, since the SDK's client must be closed by the task that opened it. That task is ended by
`aclose`, and by the event loop's end.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import Any, Final, Protocol, cast

from agent import __version__
from agent.errors import SourceError, SourceErrorKind

START_SECONDS: Final = 60.0
"""For a server to start: `npx` may fetch it first."""
MAX_PAGES: Final = 20
"""Of its list of tools."""
STATUS: Final[dict[int, SourceErrorKind]] = {401: "auth", 403: "auth", 402: "quota", 408: "timeout", 429: "rate"}


class CallOutcome(Protocol):
    """What is known of a call, or of a connection, where it failed."""

    @property
    def broke(self) -> bool: ...
    @property
    def why(self) -> str: ...
    @property
    def status(self) -> int: ...


class Transport(CallOutcome, Protocol):
    """A way to a server."""

    def streams(self) -> AbstractAsyncContextManager[tuple[Any, Any]]: ...
    def call(self) -> AbstractContextManager[CallOutcome]:
        """What will be known of the call that is made inside; other calls may be made at the same time."""
        ...


class Silence:
    """How long calls waited for nothing since the server's last answer; seconds in which several waited count once."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._counted_to = 0.0

    def heard(self) -> None:
        """The server answered."""
        self._seconds, self._counted_to = 0.0, asyncio.get_running_loop().time()

    def waited(self, *, since: float) -> float:
        """Count a call that waited since then, by the loop's clock; gives all seconds."""
        now = asyncio.get_running_loop().time()
        self._seconds += now - max(since, self._counted_to)
        self._counted_to = now
        return self._seconds


class OpenServer:
    """A server that answers."""

    def __init__(self, client: Any, tools: Sequence[Any], transport: Transport) -> None:
        """Take what was opened.

        Args:
            client: of the SDK.
            tools: that the server offers, as the SDK gives them.
            transport: the way to it.
        """
        self.client = client
        self.tools = tools
        self.transport = transport
        self.silence = Silence()
        self._calls = 0
        self._dropped = False
        self._over = asyncio.Event()

    @contextmanager
    def call(self) -> Generator[CallOutcome]:
        """What will be known of the call that is made inside; the connection is not closed under it."""
        self._calls += 1
        try:
            with self.transport.call() as outcome:
                yield outcome
        finally:
            self._calls -= 1
            self._close_if_idle()

    def drop(self) -> None:
        """Close the connection once the calls that are on their way have ended."""
        self._dropped = True
        self._close_if_idle()

    async def over(self) -> None:
        """Wait until it is to be closed."""
        await self._over.wait()

    def _close_if_idle(self) -> None:
        if self._dropped and not self._calls:
            self._over.set()


class Connection:
    """Of one event loop."""

    def __init__(self, name: str, transport: Callable[[], Transport], *, start_seconds: float) -> None:
        """Open nothing yet.

        Args:
            name: of the source, for sentences.
            transport: a new one for each time that the connection is opened.
            start_seconds: for the server to start and to say what it offers.
        """
        self._name = name
        self._transport = transport
        self._start_seconds = start_seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: asyncio.Future[OpenServer] | None = None

    async def server(self) -> OpenServer:
        """The open server; who leaves while it starts does not stop it for the next one.

        Raises:
            SourceError: it cannot be opened.
        """
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._hold(self._ready))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(self._ready)

    def drop(self, server: OpenServer) -> None:
        """Let go of a connection that broke: the next search opens another one, and calls on their way may end."""
        ready = self._ready
        if ready is not None and ready.done() and not ready.exception() and ready.result() is server:
            self._ready = None
            server.drop()

    async def aclose(self) -> None:
        """End the connection, and the server's process with it."""
        self._ready = None
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _hold(self, ready: "asyncio.Future[OpenServer]") -> None:
        from mcp import Client
        from mcp_types import Implementation

        logging.getLogger("mcp.client").setLevel(logging.CRITICAL)  # every failure is on the trace, and none twice
        transport = self._transport()
        starting = asyncio.timeout(self._start_seconds)
        try:
            us = Implementation(name="cairn", version=__version__)
            async with starting, Client(transport.streams(), client_info=us, cache=None) as client:
                tools = await _tools(client)
                starting.reschedule(None)
                server = OpenServer(client, tools, transport)
                ready.set_result(server)
                await server.over()
        except Exception as error:  # noqa: BLE001  # the SDK and its transports raise anything
            late = starting.expired()
            why = f"did not start to speak MCP in {self._start_seconds:g} s" if late else "cannot be opened"
            self._fail(ready, failure(self._name, error, transport, why=why, kind="timeout" if late else "upstream"))
        finally:
            self._fail(ready, SourceError(f"{self._name} was closed"))

    def _fail(self, ready: "asyncio.Future[OpenServer]", error: SourceError) -> None:
        if not ready.done():
            ready.set_exception(error)
            ready.exception()  # it was seen: perhaps no one waits any more
            self._ready = None if self._ready is ready else self._ready


async def _tools(client: Any) -> list[Any]:
    """All that the server offers, within a bound."""
    tools: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools


def failure(
    name: str, error: BaseException, outcome: CallOutcome, *, why: str, kind: SourceErrorKind = "upstream"
) -> SourceError:
    """What went wrong as one sentence: what was tried, and what is known of it."""
    first = error
    while isinstance(first, BaseExceptionGroup):
        first = cast("BaseExceptionGroup[BaseException]", first).exceptions[0]
    late = isinstance(first, TimeoutError)
    said = outcome.why if outcome.broke or late else (str(first).splitlines() or [type(first).__name__])[0]
    sentence = " ".join(f"{name} {why}{': ' if said else ''}{said}".split())
    return SourceError(sentence[:400], kind=STATUS.get(outcome.status, kind))
