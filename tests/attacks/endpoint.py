"""An OpenAI-compatible endpoint whose model writes what the attacker wants, turn by turn."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.attacks.product import Hostile, hostile_server, respond

Say = Callable[[str], str]
"""From the whole request, as JSON text, to what the model writes."""


@contextmanager
def endpoint(say: Say) -> Generator[Hostile]:
    """Its base URL is `url` with /v1 behind it; its model is called `evil`."""
    place: list[Hostile] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.command == "GET":
            respond(handler, json.dumps({"object": "list", "data": [{"id": "evil"}]}).encode())
            return
        body = place[0].requests[-1][3].decode("utf-8", "replace")
        delta = {"role": "assistant", "content": say(body)}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "evil"}
        frames: list[dict[str, Any]] = [
            chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
        lines = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames)
        respond(handler, f"{lines}data: [DONE]\n\n".encode(), kind="text/event-stream")

    with hostile_server(answer) as server:
        place.append(server)
        yield server
