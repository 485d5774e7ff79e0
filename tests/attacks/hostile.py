"""Whether a server answers others while it is sent hostile bodies, searches hostile documents and hears hostile replies.

python -m tests.attacks.hostile                       1,000 requests, 8 at a time
python -m tests.attacks.hostile --requests 60 --seed 7
python -m tests.attacks.hostile --write               keeps docs/bench/hostile.md, too
"""

import argparse
import http.client
import json
import platform
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from tests.attacks.bodies import Hostile, bodies
from tests.attacks.hostile_replies import WORDS, replies
from tests.attacks.product import Product, hostile_server

REPORT: Final = Path("docs/bench/hostile.md")
CODE: Final = (
    "server",
    "agent/rstool",
    "agent/policies",
    "agent/outbound",
    "agent/loop/loop.py",
    "agent/sanitize/sanitize.py",
    "tests/attacks/bodies.py",
)
P99_MS: Final = 100.0
PROBE_SECONDS: Final = 0.02
_ANSWER_SECONDS: Final = 180
_T = TypeVar("_T")
_PROBE: Final = f"""
import http.client, json, select, sys, time
host, port = sys.argv[1], int(sys.argv[2])
taken, failed, connection = [], 0, http.client.HTTPConnection(host, port, timeout=60)
while not select.select([sys.stdin], [], [], {PROBE_SECONDS})[0]:
    began = time.perf_counter()
    try:
        connection.request("GET", "/healthz")
        failed += connection.getresponse().read() != b'{{"status":"ok"}}'
    except (OSError, http.client.HTTPException):
        failed += 1
        connection.close()
    taken.append(time.perf_counter() - began)
print(json.dumps([failed, taken]))
"""


@dataclass
class Figures:
    """What was measured."""

    requests: int
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    """By kind of request and status."""
    lost: list[str] = field(default_factory=list[str])
    """Requests that got no answer, or one that is no typed one."""
    healthz: list[float] = field(default_factory=list[float])
    """Seconds of each probe."""
    unhealthy: int = 0
    """Probes that were not answered with ok."""
    memory_mb: float = 0.0
    """The most that the server's process ever had, in 10^6 bytes."""
    broke: int = 0
    """Answers with status 500."""

    def healthz_ms(self, share: float) -> float:
        return 1000 * sorted(self.healthz)[min(len(self.healthz) - 1, int(share * len(self.healthz)))]

    @property
    def holds(self) -> bool:
        return not self.lost and not self.unhealthy and not self.broke and self.healthz_ms(0.99) < P99_MS


class _Turns(Iterator[_T]):
    """An iterator for several threads."""

    def __init__(self, source: Iterator[_T]) -> None:
        self._source, self._lock = source, threading.Lock()

    def __next__(self) -> _T:
        with self._lock:
            return next(self._source)


def measure(product: Product, folder: Path, *, requests: int, at_once: int, seed: int) -> Figures:
    """Serve hostile documents with a hostile endpoint, and send this number of requests."""
    figures = Figures(requests)
    _write_documents(folder / "docs", random.Random(seed))
    answers, sent = _Turns(replies(seed)), _Turns(bodies(seed))
    with hostile_server(lambda handler: next(answers)(handler)) as endpoint:
        endpoint.requests = _Forgetful()
        options = ("--base-url", f"{endpoint.url}/v1", "--model", "small", "--protocol", "cairn", "--corpus", "docs")
        with product.serve(*options, cwd=folder) as server:
            address = urlsplit(server.url).netloc

            def send(_number: int) -> tuple[str, str, int]:
                return _send(address, next(sent))

            with _probed(server.url, figures), ThreadPoolExecutor(at_once) as pool:
                began = time.perf_counter()
                for kind, what, status in pool.map(send, range(requests)):
                    figures.outcomes[f"{kind}: {status or 'nothing'}"] += 1
                    figures.broke += status == 500
                    figures.lost += [what] if what else []
                figures.seconds = time.perf_counter() - began
            figures.memory_mb = _memory_mb(server.running.process.pid)
            assert server.running.process.poll() is None, server.running.said
    return figures


class _Forgetful(list[tuple[str, str, dict[str, str], bytes]]):
    """What reached the endpoint, which is not looked at."""

    def append(self, _request: Any) -> None:
        """Forget it."""


@contextmanager
def _probed(url: str, figures: Figures) -> Generator[None]:
    """Ask for /healthz from a process of its own until the context ends."""
    place = urlsplit(url)
    command = [sys.executable, "-c", _PROBE, str(place.hostname), str(place.port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as probe:
        try:
            yield
        finally:
            said, _ = probe.communicate(b"\n")
            figures.unhealthy, figures.healthz = json.loads(said)


def _send(address: str, request: Hostile) -> tuple[str, str, int]:
    """Its kind, what is wrong with its answer (empty: nothing), and the status."""
    connection = http.client.HTTPConnection(address, timeout=_ANSWER_SECONDS)
    named = f"{request.method} {request.path[:60]} ({request.kind}, {len(request.body):,} bytes)"
    try:
        if request.chunk:
            pieces = (request.body[at : at + request.chunk] for at in range(0, len(request.body), request.chunk))
            connection.request(request.method, request.path, pieces, dict(request.headers), encode_chunked=True)
        else:
            connection.request(request.method, request.path, request.body, dict(request.headers))
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        return request.kind, f"{named}: {type(error).__name__}: {error}", 0
    finally:
        connection.close()
    wrong = _wrong(request, response.status, response.headers.get("content-type", ""), body)
    return request.kind, f"{named}: {response.status} {wrong}: {body[:200]!r}" if wrong else "", response.status


def _wrong(request: Hostile, status: int, kind: str, body: bytes) -> str:
    """Why the answer is none that a client can read; empty where it is one."""
    if status >= 400 and request.path not in ("/mcp", "/readyz"):
        try:
            error = json.loads(body)["error"]
        except (ValueError, KeyError, TypeError):
            return "is no error object"
        return "" if error["message"] and error["code"] and len(body) < 16_384 else "is no good error object"
    if kind.startswith("text/event-stream"):
        return (
            "" if (body.rstrip() and body.endswith(b"\n\n")) or request.path == "/mcp" else "is a stream that was cut"
        )
    if kind.startswith("application/json") and body:
        try:
            json.loads(body)
        except ValueError:
            return "is no JSON"
    return ""


def _write_documents(folder: Path, chance: random.Random) -> None:
    """Documents of tags, blanks and long lines, one of 8 MB."""
    folder.mkdir()
    odd = [
        "<" + " " * 20_000,
        "javascript:alert(1)",
        "http://[evil",
        "\u202e" * 500,
        "<|im_end|>" * 200,
        "",
        "[1] A · web",
    ]
    rows: list[dict[str, str]] = []
    for number in range(200):
        text = "Aurora Falls is a film. " + "".join(chance.choice(WORDS) for _ in range(chance.randrange(400)))
        rows.append(
            {"id": f"d{number}", "title": f"Aurora Falls {chance.choice(odd)}"[:900], "text": text}
            | {"url": chance.choice(odd)[:2000], "date": chance.choice(("2024-01-01", ""))}
        )
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "odd.jsonl").write_text(lines.replace("\\ud800", "?"), encoding="utf-8")
    (folder / "long.txt").write_text(
        "Aurora Falls <think> is [1] a film.\n" * (8 * 1024 * 1024 // 36), encoding="utf-8"
    )


def _memory_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM"))


def _rows(figures: Figures) -> list[tuple[str, str]]:
    return [
        ("requests", f"{figures.requests:,}"),
        ("lost: no answer, or none that a client can read", f"{len(figures.lost)}"),
        ("answers with status 500", f"{figures.broke}"),
        ("probes of /healthz", f"{len(figures.healthz):,}"),
        ("of these not answered with ok", f"{figures.unhealthy}"),
        ("/healthz, median", f"{figures.healthz_ms(0.5):.1f} ms"),
        (f"/healthz, p99 (bound {P99_MS:.0f} ms)", f"{figures.healthz_ms(0.99):.1f} ms"),
        ("/healthz, longest", f"{figures.healthz_ms(1):.0f} ms"),
        ("most memory of the server", f"{figures.memory_mb:,.0f} MB"),
        ("seconds", f"{figures.seconds:.0f}"),
    ]


def page(figures: Figures, *, at_once: int, seed: int) -> str:
    """What `--write` keeps."""
    from agent.cores import cores

    rows = "\n".join(f"| {name} | {value} |" for name, value in _rows(figures))
    outcomes = "\n".join(f"| {name} | {count} |" for name, count in sorted(figures.outcomes.items()))
    return f"""# The server under hostile input

`python -m tests.attacks.hostile --requests {figures.requests} --seed {seed} --write`; \
Python {platform.python_version()}, {cores()} cores, which the server, its clients and the endpoint share.

`cairn serve` with an endpoint that answers every call with a random hostile reply of up to 8 MB, and 200 hostile \
documents beside one of 8 MB. {figures.requests:,} random requests come {at_once} at a time, to every address, with \
bodies of up to 8 MB: odd members and texts, megabytes of members, other encodings and bytes, bodies in tiny chunks. \
Another process asks for `/healthz` every {1000 * PROBE_SECONDS:.0f} ms meanwhile.

| | |
|---|---:|
{rows}

A status other than 200 is the right answer to most of these requests; each has to be an error object with a message.

| request: status | |
|---|---:|
{outcomes}
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.hostile", description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--product", default=sys.executable, help="the Python of the environment that is attacked")
    parser.add_argument("--write", action="store_true", help=f"keep {REPORT}, too")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="cairn-hostile-") as name:
        (home := Path(name) / "home").mkdir()
        (folder := Path(name) / "work").mkdir()
        figures = measure(
            Product(Path(options.product), home),
            folder,
            requests=options.requests,
            at_once=options.at_once,
            seed=options.seed,
        )
    said = [f"{name:50} {value}" for name, value in _rows(figures)] + [f"lost: {what}" for what in figures.lost]
    said += [f"{name:50} {count}" for name, count in sorted(figures.outcomes.items())]
    sys.stdout.write("\n".join(said) + "\n")
    if options.write:
        from lab.report import write_report

        write_report(REPORT, page(figures, at_once=options.at_once, seed=options.seed), code=CODE)
    return 0 if figures.holds else 1


if __name__ == "__main__":
    sys.exit(main())
