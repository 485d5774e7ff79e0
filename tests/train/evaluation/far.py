"""An OpenAI-compatible agent on a free port, in threads of its own, that says, fails or hangs as a test wants it."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class AgentRequest:
    """One request."""

    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    times: int
    """How often this question has come, with this time."""

    @property
    def question(self) -> str:
        turns: Sequence[Mapping[str, str]] = self.body.get("messages") or self.body["input"]
        return turns[-1]["content"]


@dataclass(frozen=True)
class Given:
    """What comes back: an object, or the events of a stream."""

    body: Any = None
    events: Sequence[Any] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    breaks: bool = False
    """The connection ends without the stream's end."""
    done: bool = True
    """A stream ends with [DONE]."""


def chat(content: str, **more: Any) -> Given:
    """A whole chat completion."""
    message = {"role": "assistant", "content": content}
    return Given({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **more})


def deltas(*pieces: Mapping[str, Any], **more: Any) -> list[Any]:
    """The chunks of a streamed chat completion; `more` is in the last one, beside no choice."""
    chunks: list[Any] = [{"choices": [{"index": 0, "delta": piece, "finish_reason": None}]} for piece in pieces]
    return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], **more}]


Says = Callable[[AgentRequest], Given]


class FarAgent(ThreadingHTTPServer):
    """Keeps its requests, and counts those that it answered with 200, by question."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, says: Says) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.says = says
        self.requests: list[AgentRequest] = []
        self.answered: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def take(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[AgentRequest, Given]:
        with self._lock:
            before = AgentRequest(path, body, headers, 0)
            times = 1 + sum(earlier.question == before.question for earlier in self.requests)
            request = AgentRequest(path, body, headers, times)
            self.requests.append(request)
        return request, self.says(request)

    def count(self, request: AgentRequest) -> None:
        with self._lock:
            self.answered[request.question] += 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    server: FarAgent  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request, given = self.server.take(self.path, body, headers)
        self.send_response(given.status)
        for name, value in given.headers.items():
            self.send_header(name, value)
        if given.events is None:
            said = given.body if isinstance(given.body, str) else json.dumps(given.body)
            if "content-type" not in given.headers:
                self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(said.encode())
        else:
            self.send_header("content-type", "text/event-stream; charset=utf-8")
            self.end_headers()
            ends = ["[DONE]"] if given.done and not given.breaks else []
            for event in [*map(json.dumps, given.events), *ends]:
                self.wfile.write(f"data: {event}\n\n".encode())
                self.wfile.flush()
        if given.status == 200 and not given.breaks:
            self.server.count(request)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


@contextmanager
def far_agent(says: Says) -> Generator[FarAgent]:
    """An agent that answers while the test runs."""
    with FarAgent(says) as agent:
        thread = threading.Thread(target=agent.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield agent
        finally:
            agent.shutdown()
            thread.join(10)
