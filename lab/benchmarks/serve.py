"""`cairn bench serve`: many streams at once against a server in a process of its own; nothing is simulated."""

import asyncio
import gc
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final, cast

from agent.cores import cores
from agent.errors import SetupError
from agent.parallel.processes import GC_THRESHOLD, spawning
from agent.settings import CairnSettings
from lab.benchmarks.percentiles import percentiles
from lab.report import ReportTable

if TYPE_CHECKING:
    import httpx2

START_SECONDS: Final = 60.0
ANSWER_SECONDS: Final = 600.0
STOP_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Spread:
    """Seconds at the median and at the 99th percentile."""

    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Spread":
        cuts = percentiles(seconds)
        return cls(p50=cuts[49], p99=cuts[98])


@dataclass(frozen=True)
class ServeFigures:
    streams: int
    questions: int
    lost: int
    """Streams that did not end in an answer, usage and `[DONE]`."""
    seconds: float
    answers_per_s: float
    tokens_per_s: float
    first_byte: Spread
    first_token: Spread
    """The first reasoning or content."""
    answer: Spread
    """The first word of the answer itself."""
    last_byte: Spread
    added: Spread
    """From the first byte sent to the last one received, less the rollout's own time."""
    cpu_share_ours: float
    """CPU time of the event loop's thread (HTTP, JSON, the loop, plans, searches) of the server's whole CPU time."""
    cpu_ms_ours: float
    """The same for one answer, in milliseconds."""
    cores_busy: float
    """CPU time of the server's process for each second."""
    start_seconds: float
    """From the start of the server's process until it listened, the policy and the world loaded."""
    first_answer_seconds: float
    """From there on to the end of the very first answer, alone."""

    def as_dict(self) -> dict[str, Any]:
        """Plain names: `first_byte_ms_p50`, … and everything that is one number."""
        plain = {k: v for k, v in asdict(self).items() if not isinstance(v, dict)}
        for name in ("first_byte", "first_token", "answer", "last_byte", "added"):
            spread = cast(Spread, getattr(self, name))
            plain |= {f"{name}_ms_p50": 1000 * spread.p50, f"{name}_ms_p99": 1000 * spread.p99}
        return plain


@dataclass
class _Stream:
    """What one client saw: when, in seconds since its request."""

    first_byte: float = 0.0
    first_token: float = 0.0
    answer: float = 0.0
    last_byte: float = 0.0
    tokens: int = 0
    rollout: float = 0.0
    """The server's own figure of the rollout's seconds."""
    whole: bool = False
    arrivals: list[tuple[float, bytes]] = field(default_factory=list[tuple[float, bytes]], repr=False)

    def read(self) -> None:
        """Make the figures from what arrived; done at the end, so that it costs the measurement nothing."""
        text = b""
        done = answered = False
        for at, piece in self.arrivals:
            *frames, text = (text + piece).split(b"\n\n")
            for frame in frames:
                done = done or frame == b"data: [DONE]"
                if frame.startswith(b"data: {"):
                    answered = self._frame(json.loads(frame[6:]), at) or answered
        self.first_byte, self.last_byte = self.arrivals[0][0], self.arrivals[-1][0]
        self.whole = done and answered and self.rollout > 0
        self.arrivals.clear()

    def _frame(self, frame: dict[str, Any], at: float) -> bool:
        if "usage" in frame:
            self.tokens = frame["usage"]["completion_tokens"]
            self.rollout = frame["cairn"]["timings"]["total"]
        delta: dict[str, Any] = frame["choices"][0]["delta"] if frame.get("choices") else {}
        said = bool(delta.get("content"))
        if (said or "reasoning_content" in delta) and not self.first_token:
            self.first_token = at
        if said and not self.answer:
            self.answer = at
        return said


def measure(settings: CairnSettings, *, streams: int, questions: int, progress: Callable[[], object]) -> ServeFigures:
    """Start the server, ask `questions` with `streams` at once, and stop it.

    Raises:
        SetupError: the server could not be started.
    """
    from agent.build.sources import with_world
    from agent.world import load_world

    settings = with_world(settings)
    texts = [question.question for question in load_world(settings.world).questions]
    texts = [texts[i % len(texts)] for i in range(questions)]
    context = spawning()
    ours, theirs = context.Pipe()
    began = time.perf_counter()
    child = context.Process(target=_serve, args=(settings.model_dump(), theirs), daemon=True)
    child.start()
    try:
        if not ours.poll(START_SECONDS):
            raise SetupError(f"the server did not start within {START_SECONDS:.0f} s")
        address = ours.recv()
        if isinstance(address, Exception):
            child.join(STOP_SECONDS)
            raise SetupError(str(address)) from address
        started = time.perf_counter() - began
        figures = asyncio.run(_load(address, ours, texts, streams=streams, started=started, progress=progress))
        child.join(STOP_SECONDS)
        return figures
    finally:
        child.terminate()
        child.join()


async def _load(
    address: str, pipe: Connection, texts: list[str], *, streams: int, started: float, progress: Callable[[], object]
) -> ServeFigures:
    import httpx2

    limits = httpx2.Limits(max_connections=streams, max_keepalive_connections=streams)
    async with httpx2.AsyncClient(base_url=address, timeout=ANSWER_SECONDS, limits=limits, trust_env=False) as client:
        first = await _ask(client, texts[0])
        waiting = iter(texts)
        seen: list[_Stream] = []

        async def worker() -> None:
            for question in waiting:
                seen.append(await _ask(client, question))
                progress()

        pipe.send("start")
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(streams):
                group.create_task(worker())
        seconds = time.perf_counter() - began
        pipe.send("stop")
    use = await asyncio.to_thread(pipe.recv)
    return _figures(seen, first, use, seconds=seconds, streams=streams, started=started)


async def _ask(client: "httpx2.AsyncClient", question: str) -> _Stream:
    import httpx2

    body = {
        "model": "cairn",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": question}],
    }
    stream = _Stream()
    began = time.perf_counter()
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            async for piece in response.aiter_raw():
                stream.arrivals.append((time.perf_counter() - began, piece))
    except httpx2.HTTPError:
        return stream
    return stream


def _figures(
    seen: list[_Stream], first: _Stream, use: dict[str, float], *, seconds: float, streams: int, started: float
) -> ServeFigures:
    for stream in (first, *seen):
        if stream.arrivals:
            stream.read()
    whole = [stream for stream in seen if stream.whole]
    return ServeFigures(
        streams=streams,
        questions=len(seen),
        lost=len(seen) - len(whole),
        seconds=seconds,
        answers_per_s=len(whole) / seconds,
        tokens_per_s=sum(stream.tokens for stream in whole) / seconds,
        first_byte=Spread.of([stream.first_byte for stream in whole]),
        first_token=Spread.of([stream.first_token for stream in whole]),
        answer=Spread.of([stream.answer for stream in whole]),
        last_byte=Spread.of([stream.last_byte for stream in whole]),
        added=Spread.of([stream.last_byte - stream.rollout for stream in whole]),
        cpu_share_ours=use["loop"] / use["process"],
        cpu_ms_ours=1000 * use["loop"] / max(1, len(whole)),
        cores_busy=use["process"] / seconds,
        start_seconds=started,
        first_answer_seconds=first.last_byte,
    )


def _serve(dumped: dict[str, Any], pipe: Connection) -> None:
    """The server's process: sends its address, measures its own CPU time between `start` and `stop`, and sends it."""
    gc.set_threshold(*GC_THRESHOLD)  # as the command does
    from server import launch

    try:
        settings = CairnSettings(**dumped)
        listener = launch.bind(settings.host, settings.port)
        server = launch.make_server(launch.make_service(settings), launch.rules_of(settings))
    except SetupError as error:
        pipe.send(SetupError(str(error)))
        return

    async def run() -> None:
        marks: list[tuple[float, float]] = []

        def hear() -> None:
            marks.append((time.thread_time(), time.process_time()))
            if pipe.recv() == "stop":
                (loop, process), (loop_end, process_end) = marks
                pipe.send({"loop": loop_end - loop, "process": process_end - process})
                server.should_exit = True

        asyncio.get_running_loop().add_reader(pipe.fileno(), hear)
        pipe.send(launch.address_of(listener))
        await server.serve(sockets=[listener])

    asyncio.run(run())


def table(figures: ServeFigures) -> ReportTable:
    named = {
        "to the first byte": figures.first_byte,
        "to the first token": figures.first_token,
        "to the answer": figures.answer,
        "to the last byte": figures.last_byte,
        "added to the rollout": figures.added,
    }
    return ReportTable(
        ("", "median", "p99"),
        [(name, f"{1000 * spread.p50:.0f} ms", f"{1000 * spread.p99:.0f} ms") for name, spread in named.items()],
        title=f"{figures.questions} questions, {figures.streams} streams at once",
        caption=f"{figures.answers_per_s:.1f} answers/s, {figures.tokens_per_s:.0f} tokens/s, {figures.lost} lost; "
        f"{figures.cpu_share_ours:.0%} of the server's CPU time is ours",
    )


def report(figures: ServeFigures) -> str:
    return f"""# The server under load

`cairn bench serve --streams {figures.streams} --questions {figures.questions} --write`; \
Python {platform.python_version()}, {cores()} cores, which server and client share.

{figures.questions} questions of the little world, {figures.streams} streams open at the same time, the embedded \
policy, a server in a process of its own, over HTTP. Every answer comes from a whole rollout.

| | |
|---|---|
| answers/s | {figures.answers_per_s:.1f} |
| tokens/s, sampled by the policy | {figures.tokens_per_s:.0f} |
| lost | {figures.lost} of {figures.questions} |
| share of the server's CPU time that is ours | {figures.cpu_share_ours:.1%} |
| our CPU time for one answer | {figures.cpu_ms_ours:.1f} ms |
| cores that the server kept busy | {figures.cores_busy:.2f} |
| start of the process until it listens | {figures.start_seconds:.2f} s |
| from there to the first answer, alone | {figures.first_answer_seconds:.2f} s |

{table(figures).markdown()}

*Lost* is a stream that did not end in an answer, usage and `[DONE]`. *Ours* is the CPU time of the event loop's \
thread, where HTTP, JSON, the loop, plans and searches run, of the CPU time of the whole server process; the rest are \
the engine's worker threads. *Added* is the time from the request to the last byte less the rollout's own seconds, so \
it holds reading the request, waiting for the loop and sending.
"""
