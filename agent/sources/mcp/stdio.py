"""The process of an MCP server that speaks on its standard streams.

It is a stranger's program: what it writes is bounded, it knows no variable of our environment that no setting names,
and it ends with who started it. The SDK's own transport for this collects a line without an end, whatever its length.
"""

import shutil
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from typing import Any, Final

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

MAX_BYTES: Final = 8 * 1024 * 1024
"""That a server may write after one message of ours."""
TAIL_BYTES: Final = 2_000
GRACE_SECONDS: Final = 1.0
"""To end by itself once its input is closed, and again once it was requested."""
_BROKEN: Final = (
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.IncompleteRead,
    anyio.EndOfStream,
    OSError,
)

Streams = tuple[Any, Any]
"""What the SDK's client reads messages from, and what it writes them to."""


class StdioTransport:
    """A command that is run for one connection."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str]) -> None:
        """Start nothing yet.

        Args:
            command: program and arguments; no shell reads it.
            environment: variables beside PATH, HOME and their like.
        """
        self._command = list(command)
        self._environment = dict(environment)
        self._process: Process | None = None
        self._tail = bytearray()
        self._stray = ""
        self._written = 0
        self._flooded = False
        self._ended = False
        """By us."""

    @property
    def pid(self) -> int:
        """Of its process; 0 before there is one."""
        return self._process.pid if self._process else 0

    @property
    def broke(self) -> bool:
        """Whether nothing more can come, and that is the server's doing."""
        return self._flooded or self._code is not None

    @property
    def _code(self) -> int | None:
        return None if self._process is None or self._ended else self._process.returncode

    @property
    def why(self) -> str:
        """What is known of a failure: how the process ended, and what it wrote that was no message."""
        if self._flooded:
            return f"it wrote more than {MAX_BYTES >> 20} MB"
        lines = bytes(self._tail).decode("utf-8", errors="replace").strip().splitlines()
        said = lines[-1].strip() if lines else ""
        if self._code is not None:
            return f"its process ended with {self._code}{': ' if said else ''}{said}"
        return f"it wrote {self._stray!r}, which is no message" if self._stray else said

    @property
    def status(self) -> int:
        """There is none."""
        return 0

    def call(self) -> "AbstractContextManager[StdioTransport]":
        """Every call ends as the process does."""
        return nullcontext(self)

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[Streams]:
        """Run the process, and end it and its children.

        Raises:
            OSError: it cannot be started.
        """
        environment = get_default_environment() | self._environment
        program, *arguments = self._command
        program = shutil.which(program, path=environment.get("PATH")) or program  # Windows itself finds no npx.cmd
        process = await anyio.open_process([program, *arguments], env=environment, start_new_session=True)
        self._process = process
        into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, out = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._read, process, into)
                group.start_soon(self._write, process, out, into)
                group.start_soon(self._listen, process)
                try:
                    yield incoming, outgoing
                finally:
                    self._ended = process.returncode is None
                    with anyio.CancelScope(shield=True):
                        await _end(process)
                    group.cancel_scope.cancel()
        finally:
            for stream in (into, incoming, outgoing, out):
                stream.close()

    async def _read(self, process: Process, into: Any) -> None:
        assert process.stdout is not None, "it has pipes"
        lines = BufferedByteReceiveStream(process.stdout)
        async with into:
            with suppress(*_BROKEN):
                while not self._flooded:
                    try:
                        line = await lines.receive_until(b"\n", MAX_BYTES)
                    except anyio.DelimiterNotFound:
                        self._flooded = True
                        return  # it waits at a full pipe until the connection is closed
                    self._written += len(line)
                    self._flooded = self._written > MAX_BYTES
                    if message := self._message(line):
                        await into.send(message)
            await _exited(process)  # so that who hears of the end can say how it ended

    def _message(self, line: bytes) -> SessionMessage | None:
        """A line that is a message; of others the first is kept for the sentence."""
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except (ValueError, RecursionError):
            self._stray = self._stray or line[:80].decode("utf-8", errors="replace").strip()
            return None

    async def _write(self, process: Process, out: Any, into: Any) -> None:
        assert process.stdin is not None, "it has pipes"
        try:
            async for message in out:
                self._written = 0
                await process.stdin.send(
                    message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                )
        except _BROKEN:
            into.close()  # who waits for an answer hears that none comes

    async def _listen(self, process: Process) -> None:
        """Keep the end of what it writes for people."""
        assert process.stderr is not None, "it has pipes"
        with suppress(*_BROKEN):
            async for part in process.stderr:
                self._tail = (self._tail + part)[-TAIL_BYTES:]


async def _end(process: Process) -> None:
    """Close its input, then end what is left of it and of its children."""
    assert process.stdin is not None, "it has pipes"
    with suppress(*_BROKEN):
        await process.stdin.aclose()
    await _exited(process)
    if sys.platform == "win32":
        with suppress(OSError):
            process.kill()
    else:
        await terminate_posix_process_tree(process, GRACE_SECONDS)
    with anyio.move_on_after(GRACE_SECONDS):
        await process.aclose()


async def _exited(process: Process) -> None:
    """Wait a moment for it to end. `Process.wait` would wait for its pipes, too, which a child may hold."""
    with anyio.move_on_after(GRACE_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110  # nothing else reports it
            await anyio.sleep(0.01)
