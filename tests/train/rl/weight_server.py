"""A server that takes weights and samples with them: what a run uses of vLLM's, for a model of tests.

    POST /collective_rpc    `cairn_read_weights` from a folder; the model has them when the reply comes
    POST /v1/completions    ids in, a stream of ids with log-probabilities out, as vLLM answers `return_token_ids`

And /v1/models, /health, /reset_prefix_cache, /update_weight_version and /weight_info, as vLLM's server has them. Runs
with vLLM's own are in test_vllm_runs.py.
"""

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import safetensors.torch as safetensors_torch
import torch
import transformers


class Weighted:
    """A model behind a server, and all weights that it was sent."""

    def __init__(self, start: Path) -> None:
        auto: Any = transformers.AutoModelForCausalLM
        self.model: Any = auto.from_pretrained(start, dtype=torch.float32).eval()
        self.name = str(start)
        self.context_tokens = 700
        self.received: list[dict[str, torch.Tensor]] = []
        self.requests = 0
        self.longest = 0
        """The most tokens that a request could have led to, its prompt included."""
        self.refuse = False
        """Answer 500 where weights are sent."""
        self.forget = False
        """Have another version of the weights when the first turn was sampled, as after a restart."""
        self.version = "default"
        self.development = True
        self.url = ""
        self._lock = Lock()

    def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """Status and reply of everything but completions."""
        if path == "/health":
            return 200, {}
        if path == "/v1/models":
            return 200, {"data": [{"id": self.name, "max_model_len": self.context_tokens}]}
        if not self.development:
            return 404, {"detail": "Not Found"}
        match path:
            case "/weight_info":
                return 200, {"weight_version": self.version}
            case "/collective_rpc":
                if body["method"] == "cairn_read_weights":
                    if self.refuse:
                        return 500, {"error": "Internal Server Error"}
                    self.take(Path(body["args"][0]))
                return 200, {"results": [None]}
            case "/reset_prefix_cache":
                return 200, {"success": True}
            case "/update_weight_version":
                self.version = body["new_version"]
                return 200, {"success": True}
            case _:
                return 404, {"detail": "Not Found"}

    def take(self, folder: Path) -> None:
        safetensors: Any = safetensors_torch
        weights = safetensors.load_file(folder / "model.safetensors")
        with self._lock:
            self.model.load_state_dict(weights, strict=False)
            self.received.append(weights)

    def sample(self, request: dict[str, Any]) -> Iterator[tuple[int, float]]:
        """At a temperature of 0 or 1."""
        self.requests += 1
        if self.forget:
            self.version = "default"
        generator = torch.Generator().manual_seed(request.get("seed") or 0)
        ids = list(request["prompt"])
        self.longest = max(self.longest, len(ids) + request["max_tokens"])
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

    def do_GET(self) -> None:
        self._reply({})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        if self.path != "/v1/completions":
            self._reply(body)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with suppress(ConnectionError):  # the client found its stop text, and left
            for token, logprob in self.served.sample(body):
                self._send({"token_ids": [token], "logprobs": {"token_logprobs": [logprob]}, "finish_reason": None})
            self._send({"token_ids": [], "logprobs": {"token_logprobs": []}, "finish_reason": "stop"})
            self.wfile.write(b"data: [DONE]\n\n")

    def _reply(self, body: Mapping[str, Any]) -> None:
        status, reply = self.served.answer(self.path.partition("?")[0], body)
        written = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)

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
