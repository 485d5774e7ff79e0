"""Finding 14: an endpoint's redirect sent the question, the evidence and the key to another host."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.attacks.chatting import CHATS, at, chat_endpoint, completion, documents
from tests.attacks.product import Product, hostile_server, respond


def test_a_redirect_takes_nothing_to_another_host(product: Product, tmp_path: Path) -> None:
    def elsewhere(handler: BaseHTTPRequestHandler) -> None:
        respond(handler, completion())

    documents(tmp_path)
    with hostile_server(elsewhere) as other:

        def redirect(handler: BaseHTTPRequestHandler) -> None:
            respond(handler, b"", status=307, location=f"{other.url}{handler.path}?leak=1")

        with chat_endpoint(redirect) as endpoint:
            done = product.run("ask", "A secret question?", *at(endpoint), cwd=tmp_path, env=CHATS)
            evidence = product.run(
                *("evidence", "Where was Persen Golney born?", "--answer-with", "m"),
                *("--answer-url", f"{endpoint.url}/v1"),
                cwd=tmp_path,
                env={"CAIRN_WORLD": "test-v2"},
            )
        assert other.requests == []
        assert done.returncode == 1
        assert f"redirects to {other.url}" in done.stdout + done.stderr
        assert "leak=1" not in done.stdout + done.stderr
        assert "redirects to" in evidence.stdout + evidence.stderr
