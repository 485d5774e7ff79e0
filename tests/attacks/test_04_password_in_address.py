"""Finding 4: a password in `base_url` was shown by /readyz, in errors and in stored traces."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.attacks.chatting import chat, chat_endpoint, in_front_of
from tests.attacks.client import ask
from tests.attacks.product import Product, respond

SECRET = "hunter2-and-more"


@pytest.mark.slow
def test_a_password_in_an_address_is_shown_to_no_client(product: Product, tmp_path: Path) -> None:
    def refuse(handler: BaseHTTPRequestHandler) -> None:
        respond(handler, f'{{"error": {{"message": "no user:{SECRET}"}}}}'.encode(), status=500)

    with chat_endpoint(refuse) as endpoint:
        address = endpoint.url.replace("http://", f"http://user:{SECRET}@") + "/v1"
        with in_front_of(endpoint, product, tmp_path, base_url=address) as server:
            said = [chat(server).body, ask(f"{server.url}/readyz").body, ask(f"{server.url}/api/runs").body]
            ids = [run["id"] for run in ask(f"{server.url}/api/runs").json["runs"]]
            said += [ask(f"{server.url}/api/runs/{id}").body for id in ids]
            log = server.running.said.encode()
    assert all(request[2]["authorization"].startswith("Basic ") for request in endpoint.requests)
    for text in (*said, log, (tmp_path / "runs.db").read_bytes()):
        assert SECRET.encode() not in text
    doctor = product.run("doctor", "--base-url", address, "--model", "m", cwd=tmp_path)
    assert SECRET not in doctor.stdout + doctor.stderr
