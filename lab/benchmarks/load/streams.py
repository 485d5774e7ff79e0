"""Many streams at once for a while: none lost, none interleaved, and how much later a token comes than it was made.

While they run, nothing is read of what comes: see `lab.benchmarks.load.client`.
"""

import asyncio
import gc
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import linear_regression
from time import perf_counter
from typing import Any, Final, cast

from lab.benchmarks.load.client import DONE, Heard, ask, question, request
from lab.benchmarks.load.paced import MARKER, STAMP, text_of
from lab.benchmarks.load.process import Running
from lab.benchmarks.percentiles import percentiles

CHAT: Final = "/v1/chat/completions"
RAMP_SECONDS: Final = 5.0
"""The streams of a long run begin within this time; of a short one within a quarter of it."""
SAMPLE_SECONDS: Final = 0.5

Progress = Callable[[float], object]
"""Gets how many seconds have passed."""


def ramp_seconds(seconds: float) -> float:
    """Within which the streams of a load begin that goes on for so long."""
    return min(RAMP_SECONDS, seconds / 4)


@dataclass
class MemorySamples:
    """Samples of a process: seconds since the load began, and 10^6 bytes."""

    seconds: list[float] = field(default_factory=list[float])
    mb: list[float] = field(default_factory=list[float])

    def slope(self, *, since: float) -> float:
        """MB a minute from some second on, by least squares; 0 where there are too few samples."""
        kept = [(at, mb) for at, mb in zip(self.seconds, self.mb, strict=True) if at >= since]
        if len(kept) < 3:
            return 0.0
        return 60 * linear_regression(*zip(*kept, strict=True)).slope


@dataclass(frozen=True)
class StreamLoad:
    """What all streams saw."""

    streams: int
    seconds: float
    """Until the last one had ended."""
    answers: int
    lost: int
    """Streams that did not bring every token once and in order, usage and `[DONE]`."""
    interleaved: int
    """Streams that brought something of another one."""
    answers_per_s: float
    tokens_per_s: float
    added_ms_p50: float
    added_ms_p99: float
    added_ms_max: float
    rss_mb: float
    """At the end."""
    rss_mb_slope: float
    """MB a minute, after the first quarter."""
    cores_busy: float
    """CPU time of the server's process for each second."""
    answer_s_p50: float = 0.0
    """Seconds from the request to the last byte of a whole answer."""
    answer_s_p95: float = 0.0


@dataclass(frozen=True)
class StreamSeen:
    """What one stream brought."""

    whole: bool
    foreign: bool
    added: tuple[float, ...]
    """Milliseconds that each token, or the whole answer, came later than it was made."""
    tokens: int
    seconds: float = 0.0
    """From the request to the last byte."""


def read_paced(heard: Heard, marker: str, tokens: int) -> StreamSeen:
    """Every token carries its stream's marker, its number and the time at which the policy gave it."""
    numbers: list[int] = []
    added: list[float] = []
    own = marker.encode()
    foreign = done = used = False
    for at, data in heard.frames():
        foreign = foreign or any(found != own for found in MARKER.findall(data))
        done = done or data == DONE
        frame = _object(data)
        used = used or "usage" in frame
        for found in STAMP.finditer(_said(frame)):
            numbers.append(int(found[2]))
            added.append((at - int(found[3])) / 1e6)
    whole = heard.status == 200 and done and used and numbers == list(range(tokens))
    return StreamSeen(whole, foreign, tuple(added), len(numbers), heard.seconds)


def read_embedded(heard: Heard) -> StreamSeen:
    """Every frame carries the completion's id; what was added is what the answer took, less its rollout."""
    ids: set[str] = set()
    answered = done = False
    tail: dict[str, Any] = {}
    for _, data in heard.frames():
        done = done or data == DONE
        frame = _object(data)
        ids |= {frame["id"]} if "id" in frame else set()
        tail = frame if "usage" in frame else tail
        answered = answered or bool(_delta(frame).get("content"))
    whole = heard.status == 200 and done and answered and bool(tail)
    if not whole:
        return StreamSeen(False, len(ids) > 1, (), 0)
    foreign = ids != {f"chatcmpl-{tail['cairn']['trace']}"}
    added = 1000 * (heard.seconds - tail["cairn"]["timings"]["total"])
    return StreamSeen(True, foreign, (added,), tail["usage"]["completion_tokens"], heard.seconds)


def _object(data: bytes) -> dict[str, Any]:
    """A frame; an empty one where it was cut."""
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _delta(frame: dict[str, Any]) -> dict[str, Any]:
    return frame["choices"][0]["delta"] if frame.get("choices") else {}


def _said(frame: dict[str, Any]) -> str:
    delta = _delta(frame)
    return delta.get("content") or delta.get("reasoning_content") or ""


async def load_paced(server: Running, *, streams: int, seconds: float, tokens: int, progress: Progress) -> StreamLoad:
    """Stamped streams.

    Args:
        server: with the paced policy.
        streams: open at the same time; each one sends the next request when it has ended.
        seconds: after which no new one begins; those that are open end.
        tokens: stamped ones of an answer.
        progress: gets the time.
    """

    def sent(stream: int, turn: int) -> bytes:
        return request(server.address, CHAT, question(text_of("whole", f"m{stream}x{turn}"), stream=True))

    return await _load(
        server,
        sent,
        lambda heard, stream, turn: read_paced(heard, f"m{stream}x{turn}", tokens),
        streams=streams,
        seconds=seconds,
        progress=progress,
    )


async def load_embedded(
    server: Running, questions: Sequence[str], *, streams: int, seconds: float, progress: Progress
) -> StreamLoad:
    """The same with questions of the little world and a policy that samples."""

    def sent(stream: int, turn: int) -> bytes:
        text = questions[(stream + streams * turn) % len(questions)]
        return request(server.address, CHAT, question(text, stream=True))

    def read(heard: Heard, stream: int, turn: int) -> StreamSeen:
        return read_embedded(heard)

    return await _load(server, sent, read, streams=streams, seconds=seconds, progress=progress)


async def _load(
    server: Running,
    sent: Callable[[int, int], bytes],
    read: Callable[[Heard, int, int], StreamSeen],
    *,
    streams: int,
    seconds: float,
    progress: Progress,
) -> StreamLoad:
    kept: list[tuple[Heard | None, int, int]] = []
    memory = MemorySamples()
    began, cpu = perf_counter(), server.cpu_seconds or 0.0

    async def worker(stream: int) -> None:
        await asyncio.sleep(ramp_seconds(seconds) * stream / streams)
        turn = 0
        while perf_counter() - began < seconds:
            kept.append((await ask(server.address, sent(stream, turn)), stream, turn))
            turn += 1

    async def watch() -> None:
        while True:
            at = perf_counter() - began
            if (mb := server.rss_mb) is not None and at < seconds:
                memory.seconds.append(at)
                memory.mb.append(mb)
            progress(at)
            await asyncio.sleep(SAMPLE_SECONDS)

    with _without_collector():
        watching = asyncio.create_task(watch())
        async with asyncio.TaskGroup() as group:
            for stream in range(streams):
                group.create_task(worker(stream))
        took, cpu = perf_counter() - began, (server.cpu_seconds or 0.0) - cpu
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    seen = [read(heard, stream, turn) if heard else StreamSeen(False, False, (), 0) for heard, stream, turn in kept]
    return _figures(seen, memory, streams=streams, seconds=took, since=seconds / 4, cpu=cpu)


def _figures(
    seen: Sequence[StreamSeen], memory: MemorySamples, *, streams: int, seconds: float, since: float, cpu: float
) -> StreamLoad:
    whole = sum(one.whole for one in seen)
    added = [ms for one in seen for ms in one.added]
    cuts = percentiles(added)
    took = percentiles([one.seconds for one in seen if one.whole])
    return StreamLoad(
        streams=streams,
        seconds=seconds,
        answers=len(seen),
        lost=len(seen) - whole,
        interleaved=sum(one.foreign for one in seen),
        answers_per_s=whole / seconds,
        tokens_per_s=sum(one.tokens for one in seen) / seconds,
        added_ms_p50=cuts[49],
        added_ms_p99=cuts[98],
        added_ms_max=max(added, default=0.0),
        rss_mb=memory.mb[-1] if memory.mb else 0.0,
        rss_mb_slope=memory.slope(since=since),
        cores_busy=cpu / seconds,
        answer_s_p50=took[49],
        answer_s_p95=took[94],
    )


@contextmanager
def _without_collector() -> Generator[None]:
    """Python's collector would stop the client while it looks through all that is kept."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
