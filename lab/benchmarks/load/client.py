"""A client of a few lines: it shares the machine with the server and must not be what is measured.

What comes is kept with the time at which it came, and read when everything is over.
"""

import asyncio
import json
from array import array
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any, Final
from urllib.parse import urlsplit

ANSWER_SECONDS: Final = 150.0
"""For a whole answer."""
DONE: Final = b"[DONE]"
_FIELD: Final = b"data: "


def request(address: str, path: str, body: dict[str, Any]) -> bytes:
    """A whole POST; the server closes when it has answered."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + data


def question(text: str, *, stream: bool) -> dict[str, Any]:
    """The body of a chat completion."""
    body: dict[str, Any] = {"model": "cairn", "messages": [{"role": "user", "content": text}], "stream": stream}
    return body | ({"stream_options": {"include_usage": True}} if stream else {})


class Heard(asyncio.Protocol):
    """One request and all that came back. Times are of `time.perf_counter_ns`."""

    def __init__(self, sent: bytes) -> None:
        self._sent = sent
        self._transport: asyncio.Transport | None = None
        self.began = 0
        self.times = array("q")
        """When each piece came."""
        self.pieces: list[bytes] = []
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.began = perf_counter_ns()
        transport.write(self._sent)

    def data_received(self, data: bytes) -> None:
        self.times.append(perf_counter_ns())
        self.pieces.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def leave(self) -> int:
        """Go away in the middle; gives the time."""
        if self._transport:
            self._transport.close()
        return perf_counter_ns()

    # Afterwards

    @property
    def status(self) -> int:
        """Of the answer; 0 where there is none."""
        words = b"".join(self.pieces[:64])[:64].split(b" ", 2)
        return int(words[1]) if words[0].startswith(b"HTTP/") and words[1:] and words[1].isdigit() else 0

    @property
    def seconds(self) -> float:
        """From the request to the last byte; 0 where nothing came."""
        return (self.times[-1] - self.began) / 1e9 if self.times else 0.0

    def header(self, name: str) -> str:
        """Of the answer; empty where it has none."""
        head = b"".join(self.pieces).partition(b"\r\n\r\n")[0].decode("latin-1")
        lines = (line.partition(":") for line in head.split("\r\n")[1:])
        return next((value.strip() for key, _, value in lines if key.lower() == name), "")

    def json(self) -> dict[str, Any]:
        """The body of an answer that is not streamed; empty where it is no object."""
        try:
            value = json.loads(b"".join(self.pieces).partition(b"\r\n\r\n")[2])
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """The data of each event, with the time at which its last byte came.

        The sizes of chunks stand between events and never within one: a server that cut an event would be seen, since
        the half of it is no JSON.
        """
        held = b""
        for at, piece in zip(self.times, self.pieces, strict=True):
            *whole, held = (held + piece).split(b"\n\n")
            for event in whole:
                start = 0 if event.startswith(_FIELD) else event.rfind(b"\n" + _FIELD) + 1
                if event.startswith(_FIELD, start):
                    yield at, event[start + len(_FIELD) :]


async def begin(address: str, sent: bytes) -> Heard:
    """Connect and send; what comes back comes by itself.

    Raises:
        OSError: there is no server.
    """
    where = urlsplit(address)
    host, port = where.hostname or "", where.port or 80
    _, heard = await asyncio.get_running_loop().create_connection(lambda: Heard(sent), host, port)
    return heard


async def ask(address: str, sent: bytes) -> Heard | None:
    """Send, and wait until the server has closed. None where it takes no connection, or does not end."""
    heard: Heard | None = None
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            heard = await begin(address, sent)
            await heard.closed
            return heard
    except OSError:  # a timeout is one, too
        return None
    finally:
        if heard:
            heard.leave()
