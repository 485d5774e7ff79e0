"""Finding 12: whatever an endpoint sent was read, and kept, without a bound."""

import gzip
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.attacks.chatting import chat, chat_endpoint, completion, in_front_of
from tests.attacks.product import Product, respond

MEGABYTE = 1024 * 1024
EVENTS = "text/event-stream"


def endless_line(handler: BaseHTTPRequestHandler) -> None:
    _endless(handler, b'data: {"choices": [{"delta": {"content": "', b"a" * MEGABYTE)


def endless_events(handler: BaseHTTPRequestHandler) -> None:
    event = b'data: {"choices": [{"delta": {"content": "' + b"a" * 60_000 + b'"}}]}\n\n'
    _endless(handler, b"", event)


def endless_comments(handler: BaseHTTPRequestHandler) -> None:
    _endless(handler, b"", b": nothing\n" * 10_000)


def huge_answer(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, completion("a" * (64 * MEGABYTE)))


def bomb(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, gzip.compress(b" " * (300 * MEGABYTE), 9), content_encoding="gzip")


def huge_error(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, b"x" * (64 * MEGABYTE), status=500)


def _endless(handler: BaseHTTPRequestHandler, start: bytes, again: bytes) -> None:
    handler.send_response(200)
    handler.send_header("content-type", EVENTS)
    handler.end_headers()
    handler.wfile.write(start)
    for _ in range(1000 * MEGABYTE // len(again)):
        handler.wfile.write(again)


@pytest.mark.parametrize(
    "attack",
    [
        endless_line,
        endless_events,
        endless_comments,
        huge_answer,
        *(pytest.param(one, marks=pytest.mark.slow) for one in (bomb, huge_error)),
    ],
)
def test_reading_an_answer_ends_at_a_bound(
    attack: Callable[[BaseHTTPRequestHandler], None], product: Product, tmp_path: Path
) -> None:
    with chat_endpoint(attack) as endpoint, in_front_of(endpoint, product, tmp_path) as server:
        answer = chat(server, max_tokens=200)
        assert answer.status in (200, 502, 503), answer
        assert len(answer.body) < MEGABYTE
        status = Path(f"/proc/{server.running.process.pid}/status").read_text(encoding="utf-8")
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    assert peak < 400 * 1024, f"{peak / 1024:.0f} MB"
