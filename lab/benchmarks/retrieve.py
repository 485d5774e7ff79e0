"""How fast `/retrieve` is under many clients, beside plain servers that handle one request at a time.

Each runs in a process of its own, on the same index with the same model, over real HTTP and by turns.
"""

import asyncio
import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from agent.errors import AgentError, SetupError
from agent.parallel.processes import spawning
from lab.benchmarks.percentiles import percentiles

if TYPE_CHECKING:
    from fastapi import FastAPI

    from agent.evidence import Passage
    from agent.sources.corpus.encoder import Encoder, Vectors

Mode = Literal["bm25", "dense", "hybrid"]
Kind = Literal["plain", "alike", "ours"]
"""`plain` encodes with the library's own `encode`; `alike` is the same server with our encoder, one query at a time."""

CLIENTS: Final = (1, 8, 64)
MODES: Final[tuple[Mode, ...]] = ("bm25", "dense", "hybrid")
KINDS: Final[Mapping[Mode, tuple[Kind, ...]]] = {
    "bm25": ("plain", "ours"),
    "dense": ("plain", "alike", "ours"),
    "hybrid": ("plain", "alike", "ours"),
}
"""What is measured beside each other; BM25 encodes nothing."""
TOPK: Final = 10
ROUNDS: Final = 3
"""How often each server is measured; the middle one counts."""
WARM: Final = 20
"""Requests before anything is measured."""
START_SECONDS: Final = 120.0
STOP_SECONDS: Final = 10.0
ROUND_SECONDS: Final = 300.0

_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class ClientLoad:
    """What all clients saw of one server. Each one sends the next request as soon as it has its answer."""

    mode: Mode
    kind: Kind
    clients: int
    requests: int
    lost: int
    """Without the requested documents."""
    qps: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class ServingSpeed:
    passages: int
    loads: tuple[ClientLoad, ...]

    def speedup(self, mode: Mode, clients: int, *, beside: Kind = "plain") -> float:
        """Queries a second, ours by those of another server; 0 where that one was not measured."""
        of = {load.kind: load.qps for load in self.loads if load.mode == mode and load.clients == clients}
        return of["ours"] / of[beside] if of.get(beside) else 0.0

    @property
    def lost(self) -> int:
        return sum(load.lost for load in self.loads)

    def as_dict(self) -> dict[str, Any]:
        """Plain names: `dense_speedup_64`, `dense_speedup_alike_64`, `dense_qps_64`, `dense_alike_p99_ms_1`, …."""
        made: dict[str, Any] = {"lost": self.lost, "load_passages": self.passages}
        for load in self.loads:
            name = load.mode if load.kind == "ours" else f"{load.mode}_{load.kind}"
            made[f"{name}_qps_{load.clients}"] = round(load.qps, 1)
            made[f"{name}_p50_ms_{load.clients}"] = round(load.p50_ms, 2)
            made[f"{name}_p99_ms_{load.clients}"] = round(load.p99_ms, 2)
            if load.kind == "plain":
                made[f"{load.mode}_speedup_{load.clients}"] = round(self.speedup(load.mode, load.clients), 2)
            elif load.kind == "alike":
                times = self.speedup(load.mode, load.clients, beside="alike")
                made[f"{load.mode}_speedup_alike_{load.clients}"] = round(times, 2)
        return made


def measure_speed(
    index: Path,
    questions: Sequence[str],
    *,
    passages: int,
    requests: int = 1200,
    modes: Sequence[Mode] = MODES,
    clients: Sequence[int] = CLIENTS,
    rounds: int = ROUNDS,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> ServingSpeed:
    """Search with the servers of each mode, with each number of clients.

    Args:
        index: an index folder; with a dense part, unless only BM25 is measured.
        questions: one query for each request, in turn.
        passages: how many the index holds; for the report.
        requests: of one measurement with the most clients; fewer clients send fewer.
        modes: what is searched.
        clients: how many ask at the same time.
        rounds: how often each is measured.
        progress: gets the progress.

    Raises:
        SetupError: a server could not be started.
    """
    loads: list[ClientLoad] = []
    total, done = sum(len(KINDS[mode]) for mode in modes) * len(clients) * rounds, 0
    for mode in modes:
        with ExitStack() as running:
            servers: dict[Kind, str] = {kind: running.enter_context(_server(kind, index, mode)) for kind in KINDS[mode]}
            for address in servers.values():
                asyncio.run(_load(address, questions[:WARM], clients=min(4, WARM)))
            for many in clients:
                queries = _in_turn(questions, max(50, requests * many // (many + 8)))
                seen: dict[Kind, list[ClientLoad]] = {kind: [] for kind in servers}
                for _ in range(rounds):
                    for kind, address in servers.items():
                        progress(f"{mode}, {many} clients", done, total)
                        seconds, took = asyncio.run(_load(address, queries, clients=many))
                        seen[kind].append(_figures(mode, kind, many, queries, seconds, took))
                        done += 1
                loads += [_middle(of) for of in seen.values()]
    return ServingSpeed(passages=passages, loads=tuple(loads))


def _in_turn(questions: Sequence[str], count: int) -> list[str]:
    return [questions[at % len(questions)] for at in range(count)]


def _figures(
    mode: Mode, kind: Kind, clients: int, queries: Sequence[str], seconds: float, took: Sequence[float]
) -> ClientLoad:
    cuts = percentiles(took)
    return ClientLoad(
        mode=mode,
        kind=kind,
        clients=clients,
        requests=len(queries),
        lost=len(queries) - len(took),
        qps=len(took) / seconds,
        p50_ms=1000 * cuts[49],
        p99_ms=1000 * cuts[98],
    )


def _middle(loads: Sequence[ClientLoad]) -> ClientLoad:
    """The round with the median rate; what was lost in any of them is lost."""
    middle = sorted(loads, key=lambda load: load.qps)[len(loads) // 2]
    return replace(middle, lost=sum(load.lost for load in loads), p99_ms=median(load.p99_ms for load in loads))


async def _load(address: str, queries: Sequence[str], *, clients: int) -> tuple[float, list[float]]:
    """Send every question; give the seconds of all, and of each that was answered."""
    waiting = iter(queries)
    took: list[float] = []
    where = urlsplit(address)

    async def client() -> None:
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            for question in waiting:
                began = perf_counter()
                writer.write(_request(where.netloc, question))
                if await _answered(reader):
                    took.append(perf_counter() - began)
        finally:
            writer.close()

    async with asyncio.timeout(ROUND_SECONDS):
        began = perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(client())
        return perf_counter() - began, took


def _request(host: str, question: str) -> bytes:
    """A client of a few lines: it shares the machine with the server, and must not be what is measured."""
    body = json.dumps({"queries": [question], "topk": TOPK, "return_scores": True}).encode()
    head = f"POST /retrieve HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


async def _answered(reader: asyncio.StreamReader) -> bool:
    """Whether the response has documents with scores; they are counted without being read whole."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body = await reader.readexactly(int(length[1]) if length else 0)
    return head.startswith(b"HTTP/1.1 200") and 0 < body.count(b'"score":') <= TOPK


@contextmanager
def _server(kind: Kind, index: Path, mode: Mode) -> Generator[str]:
    """A server in a process of its own; gives its address.

    Raises:
        SetupError: it could not be started.
    """
    context = spawning()
    ours, theirs = context.Pipe()
    child = context.Process(target=_serve, args=(kind, index, mode, theirs), daemon=True)
    child.start()
    try:
        if not ours.poll(START_SECONDS):
            raise SetupError(f"the server did not start within {START_SECONDS:.0f} s")
        yield _address(ours)
    finally:
        child.terminate()
        child.join(STOP_SECONDS)


def _address(pipe: Connection) -> str:
    try:
        address = pipe.recv()
    except EOFError as error:
        raise SetupError("the server ended before it listened; its error is above") from error
    if isinstance(address, Exception):
        raise SetupError(str(address)) from address
    return address


def _serve(kind: Kind, index: Path, mode: Mode, pipe: Connection) -> None:
    import signal

    import uvicorn

    from agent.sources.corpus.hybrid import open_corpus
    from server import launch
    from server.retrieval.service import Retriever

    try:
        listener = launch.bind("127.0.0.1", 0)
        if kind == "ours":
            server = launch.make_server(Retriever({"corpus": open_corpus(index, mode=mode)}))
        else:
            app = plain_app(plain_search(index, mode, ours=kind == "alike"))
            config = uvicorn.Config(app, log_level="warning", access_log=False)
            server = uvicorn.Server(config)
    except (AgentError, OSError) as error:
        pipe.send(SetupError(str(error)))
        return
    signal.signal(signal.SIGTERM, _leave)
    pipe.send(launch.address_of(listener))
    asyncio.run(server.serve(sockets=[listener]))


def _leave(number: int, frame: object) -> None:
    """End as a process that was not killed, so that libraries give back what they hold."""
    raise SystemExit(0)


def plain_app(search: "Callable[[str, int], Sequence[Passage]]") -> "FastAPI":
    """The simplest server with this answer: while it handles a request, nothing else happens."""
    from fastapi import FastAPI

    from server.retrieval.service import RetrieveRequest, document

    app = FastAPI()

    async def retrieve(body: RetrieveRequest) -> dict[str, Any]:
        found = [search(query, body.topk or TOPK) for query in body.queries]
        return {"result": [[{"document": document(p), "score": p.score} for p in hits] for hits in found]}

    app.post("/retrieve")(retrieve)
    return app


def plain_search(index: Path, mode: Mode, *, ours: bool = False) -> "Callable[[str, int], Sequence[Passage]]":
    """The same search as ours, for one query at a time.

    Args:
        index: an index folder.
        mode: what is searched.
        ours: encode with our encoder, instead of the library's own `encode` in the same precision.
    """
    from agent.sources.corpus.dense import DENSE, DenseIndex
    from agent.sources.corpus.hybrid import DEPTH, fuse_rows
    from agent.sources.corpus.source import CorpusSource
    from agent.sources.filters import ReadFilters

    corpus = CorpusSource(index)
    if mode == "bm25":
        return lambda query, limit: corpus.find(query, limit=limit)
    dense = DenseIndex(corpus.data / DENSE)
    encoder = dense.encoder()
    encode = encoder.encode_queries if ours else partial(_by_the_library, encoder)

    def search(query: str, limit: int) -> "Sequence[Passage]":
        near = dense.search(encode([query]), limit if mode == "dense" else DEPTH)[0]
        ranked = near if mode == "dense" else fuse_rows([corpus.ranked(query, DEPTH), near])
        return corpus.passages(ranked, limit, ReadFilters())

    return search


def _by_the_library(encoder: "Encoder", queries: Sequence[str]) -> "Vectors":
    texts = [encoder.query_prefix + query for query in queries]
    return encoder.model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
