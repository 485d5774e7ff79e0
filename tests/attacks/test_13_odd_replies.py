"""Finding 13: odd JSON from an endpoint was "a bug in Cairn"; content as a list of parts, which servers send, failed."""

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.attacks.chatting import GOOD, chat, chat_endpoint, completion, in_front_of
from tests.attacks.client import ask
from tests.attacks.product import Product, respond

ODD = [
    b"", b"null", b"[]", b'"text"', b"7", b"{", b"\xff\xfe", b"<html>no</html>", b"{}", b'{"choices": null}',
    b'{"choices": {}}', b'{"choices": [null]}', b'{"choices": [[]]}', b'{"choices": ["x"]}', b'{"choices": 3}',
    b'{"choices": [{"message": 5}]}', b'{"choices": [{"message": []}]}', completion({"a": 1}), completion(5),
    completion([1, 2]), completion(finish="7"), completion(finish='{"a": []}'), b'{"error": 5}',
    b'{"error": {"message": {"a": 1}}}', b"[" * 100_000, b'{"choices": [{"message": {"content": "a\\ud800"}}]}',
]  # fmt: skip


def test_no_odd_reply_is_called_a_bug_of_ours(product: Product, tmp_path: Path) -> None:
    left = list(ODD)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        respond(handler, left[0])

    with chat_endpoint(answer) as endpoint, in_front_of(endpoint, product, tmp_path) as server:
        while left:
            said = chat(server)
            assert said.status in (200, 502, 503), (left[0][:80], said)
            assert b"bug in" not in said.body.lower(), (left[0][:80], said)
            left.pop(0)
        assert "Traceback" not in server.running.said
        assert ask(f"{server.url}/healthz").status == 200


def test_text_as_a_list_of_parts_is_an_answer(product: Product, tmp_path: Path) -> None:
    parts = [{"type": "text", "text": GOOD[:12]}, {"type": "text", "text": GOOD[12:]}]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        respond(handler, completion(parts))

    with chat_endpoint(answer) as endpoint, in_front_of(endpoint, product, tmp_path) as server:
        said = chat(server)
    assert said.status == 200, said
    assert "Rome" in json.dumps(said.json["choices"][0]["message"])
