"""The product as a user installed it: its command, its server, and hostile HTTP servers for it to talk to.

Nothing here imports Cairn, so the attacks run against any environment that has the `cairn` command.
"""

import os
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Final
from urllib.error import URLError

from tests.attacks.forked import Commands
from tests.processes import Running, running

COMMAND_SECONDS: Final = 60
Handler = Callable[[BaseHTTPRequestHandler], None]
"""Answers one request; the body, where there is one, is in `handler.rfile`."""


@dataclass(frozen=True)
class Served:
    """A running `cairn serve`."""

    url: str
    running: Running


@dataclass(frozen=True)
class Product:
    """An environment in which Cairn is installed."""

    python: Path
    home: Path
    """The user's home folder: settings, cache and store stay in it."""
    commands: Commands | None = None
    """What starts commands of this environment and home with their modules imported; without it each imports them."""

    @property
    def environment(self) -> dict[str, str]:
        """The least that a command needs; nothing of the developer's own settings. No model is fetched."""
        path = f"{self.python.parent}:/usr/bin:/bin"
        least = {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
        return least | {"CAIRN_WORLD": "test-v2", "CAIRN_FETCH": "false"}

    def run(
        self,
        *arguments: str | Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        input: str = "",
        seconds: float = COMMAND_SECONDS,
        fresh: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run `cairn ARGUMENTS` in the folder `cwd` and wait for its end.

        Args:
            fresh: start a Python for it, where the attack is on what Python does as it starts or imports.

        Raises:
            subprocess.TimeoutExpired: it takes longer than `seconds`.
        """
        environment = self.environment | dict(env or {})
        if self.commands is not None and not fresh:
            return _run(self.commands, list(map(str, arguments)), environment, cwd, input, seconds)
        return subprocess.run(
            [str(self.python.parent / "cairn"), *map(str, arguments)],
            cwd=cwd,
            env=environment,
            input=input,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )

    @contextmanager
    def serve(self, *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Generator[Served]:
        """`cairn serve ARGUMENTS` on a free port, from the moment it answers /healthz until the context ends."""
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = ["serve", "--port", str(port), *map(str, arguments)]
        environment = self.environment | dict(env or {})
        if self.commands is None:
            program = running([str(self.python.parent / "cairn"), *command], env=environment, cwd=cwd)
        else:
            program = _running(self.commands, command, environment, cwd)
        with program as server:
            server.wait_for(lambda: _answers(f"{url}/healthz"))
            yield Served(url, server)


def _run(
    commands: Commands, arguments: list[str], env: Mapping[str, str], cwd: Path, input: str, seconds: float
) -> subprocess.CompletedProcess[str]:
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as error:
        given.write(input.encode())
        given.flush()
        given.seek(0)
        streams = (given.fileno(), out.fileno(), error.fileno())
        with commands.start(arguments, env=env, cwd=cwd, streams=streams) as command:
            code = command.wait(seconds)
        said = [os.pread(stream.fileno(), os.fstat(stream.fileno()).st_size, 0) for stream in (out, error)]
    texts = [text.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n") for text in said]
    return subprocess.CompletedProcess(["cairn", *arguments], code, *texts)


@contextmanager
def _running(commands: Commands, arguments: list[str], env: Mapping[str, str], cwd: Path) -> Generator[Running]:
    with TemporaryDirectory(prefix="cairn-log-") as folder, (Path(folder) / "log").open("w+b") as out:
        with open(os.devnull, "rb") as nothing:
            streams = (nothing.fileno(), out.fileno(), out.fileno())
            command = commands.start(arguments, env=env, cwd=cwd, streams=streams)
        with command:
            yield Running(command, Path(out.name))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except (URLError, OSError):
        return False


@dataclass
class Hostile:
    """An HTTP server of an attacker's, and the requests that reached it."""

    url: str = ""
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(
        default_factory=list[tuple[str, str, dict[str, str], bytes]]
    )
    """Of each: method, path with its query, headers in lower case, body."""


@contextmanager
def hostile_server(answer: Handler) -> Generator[Hostile]:
    """A server on 127.0.0.1 that records each request and has `answer` write the response."""
    seen = Hostile()

    class Requests(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen.requests.append((self.command, self.path, headers, body))
            try:
                answer(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_GET = do_POST = do_HEAD = do_PUT = _take

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Clients that leave are part of it."""

    server = Quiet(("127.0.0.1", 0), Requests)
    server.daemon_threads = True
    seen.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def respond(
    handler: BaseHTTPRequestHandler, body: bytes, *, status: int = 200, kind: str = "application/json", **headers: str
) -> None:
    """Write one whole response; underscores in the names of `headers` become hyphens."""
    handler.send_response(status)
    handler.send_header("content-type", kind)
    handler.send_header("content-length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)
