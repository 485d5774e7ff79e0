"""Requests to a server under attack, with the standard library alone; and whether it answers others meanwhile."""

import json
import threading
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError, URLError

QUESTION = {"messages": [{"role": "user", "content": "Where was Persen Golney born?"}]}


@dataclass(frozen=True)
class Answer:
    """What came back; status 0 where nothing did."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Mapping[str, Any]:
        """The OpenAI error object that every refusal is."""
        return self.json["error"]


def ask(
    url: str, body: object = None, *, method: str = "", seconds: float = 60, headers: Mapping[str, str] | None = None
) -> Answer:
    """Send JSON, or bytes as they are, and wait for the whole answer."""
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    sent = {"content-type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, data=data, headers=sent, method=method or ("GET" if data is None else "POST"))
    try:
        with urllib.request.urlopen(request, timeout=seconds) as response:
            return Answer(response.status, response.read())
    except HTTPError as error:
        return Answer(error.code, error.read())
    except (URLError, OSError):
        return Answer(0, b"")


@dataclass
class Pulse:
    """How long /healthz took while something else went on."""

    seconds: list[float] = field(default_factory=list[float])

    @property
    def longest(self) -> float:
        return max(self.seconds)


@contextmanager
def pulse(url: str) -> Generator[Pulse]:
    """Ask for /healthz again and again until the context ends."""
    taken, stop = Pulse(), threading.Event()

    def probe() -> None:
        while not stop.is_set():
            began = time.perf_counter()
            assert ask(f"{url}/healthz").status == 200
            taken.seconds.append(time.perf_counter() - began)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield taken
    finally:
        stop.set()
        thread.join()
