"""Connections that send no request, or send its head byte by byte, are closed after a while: uvicorn waits for ever.

Bodies are bounded by `server.guard.bodies`, idle connections after an answer by uvicorn itself.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with a bound on how long a request's head may take."""

    head_seconds: float = 20.0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def _watch_head(self) -> None:
        """Start the clock where a head is awaited, and stop it where a request is on its way."""
        if not self._awaits_head():
            self._stop_watching()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self._awaits_head() and not self.transport.is_closing():
            self.transport.abort()

    def _awaits_head(self) -> bool:
        cycle = cast(RequestResponseCycle | None, self.cycle)  # None before the first request
        return cycle is None or cycle.response_complete


def patient(head_seconds: float) -> type[PatientProtocol]:
    """The protocol with this bound, in the form that uvicorn takes."""

    class Bounded(PatientProtocol):
        pass

    Bounded.head_seconds = head_seconds
    return Bounded
