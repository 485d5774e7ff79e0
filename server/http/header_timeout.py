"""Connections that make no progress are closed: uvicorn waits for ever for a request's headers, and for its reader.

Bodies of requests are bounded by `server.http.bodies`, idle connections after an answer by uvicorn itself.
"""

import asyncio
from typing import Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

_READ_BYTES: Final = 2 * 1024
"""That are parsed at once: of a body in chunks of one byte each, more would hold up the event loop."""


class _Counted:
    """A transport that knows how much was written to it."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._written = 0

    def write(self, data: bytes) -> None:
        self._written += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    @property
    def unsent(self) -> int:
        """Bytes that the client did not take yet."""
        return self._transport.get_write_buffer_size()

    @property
    def taken(self) -> int:
        """Bytes that left, to the client or into the system's own buffer."""
        return self._written - self.unsent


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with a bound on how long a request's headers may take, and on how slowly an answer may be read."""

    header_seconds: float = 20.0
    read_seconds: float = 60.0
    """How often it is looked whether an answer is read …"""
    read_bytes: int = 480 * 1024
    """… and how much of it must have been by then, where so much waited: 64 kbit/s."""
    _header_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _due: int = 0
    """Bytes that must have been taken when it is looked the next time."""

    def connection_made(self, transport: Any) -> None:
        if getattr(transport, "max_size", 0) > _READ_BYTES:
            transport.max_size = _READ_BYTES
        self._counted = _Counted(transport)
        super().connection_made(cast(Any, self._counted))
        self._watch_headers()
        self._read_timer = self.loop.call_later(self.read_seconds, self._watch_reader)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        if self._read_timer is not None:
            self._read_timer.cancel()
        super().connection_lost(exc)

    def _watch_reader(self) -> None:
        """Close the connection of a client that does not read its answer: it holds memory as long as it likes."""
        taken, unsent = self._counted.taken, self._counted.unsent
        if taken < self._due:
            self._counted.abort()
            return
        self._due = taken + min(unsent, self.read_bytes)
        self._read_timer = self.loop.call_later(self.read_seconds, self._watch_reader)

    def _watch_headers(self) -> None:
        """Start the clock where headers are awaited, and stop it where a request is on its way."""
        if not self._awaits_headers():
            self._stop_watching()
        elif self._header_timer is None and not self.transport.is_closing():
            self._header_timer = self.loop.call_later(self.header_seconds, self._give_up)

    def _stop_watching(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _give_up(self) -> None:
        self._header_timer = None
        if self._awaits_headers() and not self.transport.is_closing():
            self.transport.abort()

    def _awaits_headers(self) -> bool:
        cycle = cast(RequestResponseCycle | None, self.cycle)  # None before the first request
        return cycle is None or cycle.response_complete


def patient(header_seconds: float, *, read_seconds: float = PatientProtocol.read_seconds) -> type[PatientProtocol]:
    """The protocol with these bounds, in the form that uvicorn takes."""

    class Bounded(PatientProtocol):
        pass

    Bounded.header_seconds = header_seconds
    Bounded.read_seconds = read_seconds
    return Bounded
