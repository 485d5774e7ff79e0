"""Finding 10: answers that no one reads were held for ever, 73 MB for each connection."""

import json
import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.attacks.client import ask
from tests.attacks.product import Product, Served

CONNECTIONS = 24
MOST_BYTES = 900 * 1024 * 1024
"""That the server's process may ever have had."""


def memory(server: Served) -> int:
    """The most that the process ever had, in bytes."""
    status = Path(f"/proc/{server.running.process.pid}/status").read_text(encoding="ascii")
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def test_an_answer_holds_no_more_documents_than_a_machine_has_room_for(product: Product, tmp_path: Path) -> None:
    with product.serve("--retrieval-only", cwd=tmp_path) as server:
        refused = ask(f"{server.url}/retrieve", {"queries": ["Persen Golney"] * 4096, "topk": 100})
        taken = ask(f"{server.url}/retrieve", {"queries": ["Persen Golney"] * 4096, "topk": 3})
    assert refused.status == 400
    assert "40,960 documents" in refused.error["message"]
    assert len(taken.json["result"]) == 4096


@pytest.mark.slow
def test_answers_that_no_one_reads_are_held_up_to_a_bound(product: Product, tmp_path: Path) -> None:
    document = {"id": "long", "title": "Aurora Falls", "text": "Aurora Falls is a film. " * 40}
    rows = [document | {"id": f"d{number}"} for number in range(10)]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    body = json.dumps({"queries": ["Aurora Falls"] * 4096, "topk": 10}).encode()
    head = f"POST /retrieve HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with product.serve("--retrieval-only", "--corpus", "docs.jsonl", cwd=tmp_path) as server, ExitStack() as stack:
        place = urlsplit(server.url)
        first: list[bytes] = []
        for _ in range(CONNECTIONS):
            connection = stack.enter_context(socket.create_connection((place.hostname, place.port), timeout=60))
            connection.sendall(head.encode() + body)
            first.append(connection.recv(12))  # and nothing more
        assert memory(server) < MOST_BYTES
        assert first[0].endswith(b"200")
        assert first[-1].endswith(b"429"), "a later one must come again"
        assert ask(f"{server.url}/retrieve", {"queries": ["Aurora Falls"]}).status == 200, "a small one is answered"
