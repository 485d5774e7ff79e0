"""Clients that leave in the middle, streamed and not, while the policy writes and while a search runs: how long it
takes until policy or search is let go, by what these say themselves.
"""  # noqa: D205 - one sentence over two lines

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice, product
from typing import Final

from lab.benchmarks.load.client import Heard, begin, question, request
from lab.benchmarks.load.paced import Place, Signal, text_of
from lab.benchmarks.load.process import Running
from lab.benchmarks.load.streams import CHAT

PATIENCE_SECONDS: Final = 15.0
"""For policy or search to begin, and to be let go."""


_PLACES: Final[tuple[Place, ...]] = ("policy", "search")


@dataclass(frozen=True)
class Leaving:
    disconnects: int
    cancelled: int
    """How many of them ended policy or search in time."""
    cancel_ms_p50: float
    cancel_ms_max: float


@dataclass
class _Client:
    marker: str
    place: Place
    stream: bool
    began: asyncio.Event
    let_go: asyncio.Future[int]
    """When, by `time.perf_counter_ns`."""


async def leave(server: Running, *, disconnects: int) -> Leaving:
    """Open `disconnects` requests at once, leave each one when it is in the middle, and see when that arrives."""
    loop = asyncio.get_running_loop()
    kinds: Iterator[tuple[Place, bool]] = cycle(product(_PLACES, (True, False)))
    clients = {
        (marker := f"m{number}x0"): _Client(marker, place, stream, asyncio.Event(), loop.create_future())
        for number, (place, stream) in enumerate(islice(kinds, disconnects))
    }
    with _listening(server, clients):
        took = await asyncio.gather(*(_leave(server, client) for client in clients.values()))
    arrived = sorted(ms for ms in took if ms is not None)
    return Leaving(
        disconnects=disconnects,
        cancelled=len(arrived),
        cancel_ms_p50=arrived[len(arrived) // 2] if arrived else 0.0,
        cancel_ms_max=max(arrived, default=0.0),
    )


async def _leave(server: Running, client: _Client) -> float | None:
    """Milliseconds from leaving until it was let go; None where neither policy nor search was ended."""
    job = "hold policy" if client.place == "policy" else "hold search"
    body = question(text_of(job, client.marker), stream=client.stream)
    heard: Heard | None = None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            heard = await begin(server.address, request(server.address, CHAT, body))
            await client.began.wait()
            left = heard.leave()
            return (await client.let_go - left) / 1e6
    except (TimeoutError, OSError):
        return None
    finally:
        if heard:
            heard.leave()


@contextmanager
def _listening(server: Running, clients: dict[str, _Client]) -> Generator[None]:
    """Pass on the signals of policy and source while this is open."""

    def hear() -> None:
        signal: Signal = server.pipe.recv()
        client = clients.get(signal.marker)
        if client is None or signal.place != client.place:
            return
        if signal.what == "began":
            client.began.set()
        elif not client.let_go.done():
            client.let_go.set_result(signal.at)

    loop = asyncio.get_running_loop()
    loop.add_reader(server.pipe.fileno(), hear)
    try:
        yield
    finally:
        loop.remove_reader(server.pipe.fileno())
