"""A server that scores prompts as vLLM does: `prompt_logprobs` of /v1/completions, and /tokenize.

with teacher_server(folder) as served:
    served.url
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer


class Served:
    """A model behind a server."""

    def __init__(self, folder: Path) -> None:
        auto: Any = transformers.AutoModelForCausalLM
        self.model: Any = auto.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.scores = True
        """Answer `prompt_logprobs`; otherwise as a server that does not know them."""
        self.requests = 0
        self.url = ""
        self.lock = Lock()
        self.server: ThreadingHTTPServer | None = None

    def completion(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests += 1
        ids = request["prompt"]
        with self.lock, torch.no_grad():
            logs = self.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
        listed = [None, *({str(id): {"logprob": float(logs[at][id]), "rank": 1}} for at, id in enumerate(ids[1:]))]
        said = {"prompt_logprobs": listed} if self.scores else {}
        return {"object": "text_completion", "choices": [{"index": 0, "text": "", "finish_reason": "length", **said}]}

    def stop(self) -> None:
        """Die: nothing listens any more."""
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


class _Handler(BaseHTTPRequestHandler):
    served: Served

    def do_POST(self) -> None:
        request: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/completions":
            answer = self.served.completion(request)
        else:
            assert self.path == "/tokenize"
            answer = {"tokens": self.served.tokenizer.encode(request["prompt"], add_special_tokens=False).ids}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written down."""


@contextmanager
def teacher_server(folder: Path) -> Generator[Served]:
    served = Served(folder)
    served.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": served}))
    thread = Thread(target=served.server.serve_forever, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{served.server.server_port}/v1"
    try:
        yield served
    finally:
        served.stop()
        thread.join()
