"""Finding 11: `Retry-After: nan` broke the event loop's timers."""

import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.attacks.chatting import chat, chat_endpoint, in_front_of
from tests.attacks.product import Product, respond


@pytest.mark.slow
def test_no_time_to_wait_breaks_the_clocks_or_tries_for_ever(product: Product, tmp_path: Path) -> None:
    waits = ["nan", "inf", "-1", "1e400", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 99 Foo 2026", "0"]
    current = ["0"]

    def refuse(handler: BaseHTTPRequestHandler) -> None:
        respond(handler, b'{"error": {"message": "later"}}', status=429, retry_after=current[0])

    with chat_endpoint(refuse) as endpoint, in_front_of(endpoint, product, tmp_path) as server:
        chat(server)  # a server asks its endpoint by itself when it starts; this waits until that is over
        for wait in waits:
            current[0], before = wait, len(endpoint.requests)
            began = time.monotonic()
            answer = chat(server)
            assert answer.status in (429, 502, 503), wait
            assert answer.error["message"]
            assert time.monotonic() - began < 30, wait
            assert len(endpoint.requests) - before <= 4, wait
