"""Finding 23: log lines held the question where an endpoint's error repeated it."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.attacks.chatting import chat, chat_endpoint, in_front_of
from tests.attacks.product import Product, respond

QUESTION = "Is the patient in ward nine contagious?"


def test_no_log_line_holds_the_question(product: Product, tmp_path: Path) -> None:
    def repeat(handler: BaseHTTPRequestHandler) -> None:
        respond(handler, f'{{"error": {{"message": "cannot answer: {QUESTION}"}}}}'.encode(), status=503)

    with chat_endpoint(repeat) as endpoint, in_front_of(endpoint, product, tmp_path) as server:
        assert chat(server, QUESTION).status in (502, 503)
        log = server.running.said
    assert "ward nine" not in log, log
    assert "contagious" not in log
