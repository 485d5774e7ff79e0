"""Finding 7: odd numbers from an endpoint stopped the store for everyone, or broke the list of runs for good."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.attacks.chatting import chat, chat_endpoint, completion, in_front_of
from tests.attacks.client import ask
from tests.attacks.product import Product, respond

ODD = ["1e30", "1" + 30 * "0", "1.5", "NaN", "-1000000000", '"many"', "true", "[1]", "null", "1e400"]


def test_the_store_and_the_list_of_runs_survive_any_number_of_tokens(product: Product, tmp_path: Path) -> None:
    left = list(ODD)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        number = left.pop() if left else "3"
        respond(handler, completion(usage=f'{{"prompt_tokens": {number}, "completion_tokens": {number}}}'))

    with chat_endpoint(answer) as endpoint, in_front_of(endpoint, product, tmp_path) as server:
        statuses = [chat(server, f"Question {number}?").status for number in range(len(ODD) + 1)]
        assert statuses == [200] * (len(ODD) + 1)
        listed = server.running.wait_for(lambda: _listed(server.url, len(ODD) + 1))
        assert all(run["state"] != "running" and 0 <= run["tokens"] < 10**9 for run in listed), listed
        assert all(ask(f"{server.url}/api/runs/{run['id']}").json["answer"] == "Rome" for run in listed)


def _listed(url: str, many: int) -> list[dict[str, Any]] | None:
    """The runs, once all are stored; the list can be read at any time."""
    runs = ask(f"{url}/api/runs?limit=50")
    assert runs.status == 200
    return runs.json["runs"] if len(runs.json["runs"]) == many else None
