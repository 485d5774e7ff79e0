"""A server that takes weights and samples with them: what a run needs of vLLM's, over HTTP, for a model of tests.

    POST /weights           safetensors; the model has them when the reply comes
    POST /v1/completions    ids in, a stream of ids with log-probabilities out, as vLLM answers `return_token_ids`

vLLM's own gets its weights over NCCL, which needs CUDA. All else of the way is the same.
"""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import safetensors.torch
import torch
import transformers


class Weighted:
    """A model behind a server, and all weights that it was sent."""

    def __init__(self, start: Path) -> None:
        auto: Any = transformers.AutoModelForCausalLM
        self.model: Any = auto.from_pretrained(start, dtype=torch.float32).eval()
        self.received: list[dict[str, torch.Tensor]] = []
        self.requests = 0
        self.refuse = False
        """Answer 500 where weights are sent."""
        self.url = ""
        self._lock = Lock()

    def take(self, body: bytes) -> None:
        weights = safetensors.torch.load(body)
        with self._lock:
            self.model.load_state_dict(weights, strict=False)
            self.received.append(weights)

    def sample(self, request: dict[str, Any]) -> Iterator[tuple[int, float]]:
        """At a temperature of 0 or 1."""
        self.requests += 1
        generator = torch.Generator().manual_seed(request.get("seed") or 0)
        ids = list(request["prompt"])
        for _ in range(request["max_tokens"]):
            with self._lock, torch.no_grad():
                logprobs = self.model(input_ids=torch.tensor([ids])).logits[0, -1].log_softmax(-1)
            greedy = not request["temperature"]
            token = int(logprobs.argmax() if greedy else torch.multinomial(logprobs.exp(), 1, generator=generator))
            ids.append(token)
            yield token, float(logprobs[token])
            if token in request["stop_token_ids"]:
                return


class _Handler(BaseHTTPRequestHandler):
    served: Weighted

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/weights":
            if not self.served.refuse:
                self.served.take(body)
            self.send_response(500 if self.served.refuse else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        assert self.path == "/v1/completions"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with suppress(ConnectionError):  # the client found its stop text, and left
            for token, logprob in self.served.sample(json.loads(body)):
                self._send({"token_ids": [token], "logprobs": {"token_logprobs": [logprob]}, "finish_reason": None})
            self._send({"token_ids": [], "logprobs": {"token_logprobs": []}, "finish_reason": "stop"})
            self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, choice: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps({"choices": [{"index": 0, **choice}]}).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written down."""


@contextmanager
def weight_server(start: Path) -> Generator[Weighted]:
    served = Weighted(start)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": served}))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
