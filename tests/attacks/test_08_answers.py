"""Finding 8: answers of another model from a run's evidence were bound by no limit of a key, and went on for no one."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.request import Request, urlopen

from tests.attacks.client import QUESTION, ask
from tests.attacks.product import Product, Served, hostile_server, respond

TOKENS = 1_000_000


class Slow:
    """A model that answers when it is let, and hears when no one waits for its answer any more."""

    def __init__(self) -> None:
        self.requested = threading.Semaphore(0)
        self.let = threading.Event()
        self.left = threading.Event()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requested.release()
        handler.connection.settimeout(0.05)
        while not self.let.is_set():
            try:
                if not handler.connection.recv(1):
                    self.left.set()
                    return
            except TimeoutError:
                continue
        handler.connection.settimeout(None)
        choice = {"index": 0, "message": {"role": "assistant", "content": "Here"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": TOKENS, "completion_tokens": 1, "total_tokens": TOKENS + 1}
        said = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "paid",
            "choices": [choice],
            "usage": usage,
        }
        respond(handler, json.dumps(said).encode())


@contextmanager
def scene(product: Product, tmp_path: Path, slow: Slow, *limits: str) -> Generator[tuple[Served, str, dict[str, str]]]:
    """A server, the address of a run's answers, and a key with limits."""
    key = product.run("key", "add", "one", *limits, cwd=tmp_path).stdout.split()[0]
    headers = {"authorization": f"Bearer {key}"}
    with hostile_server(slow.answer) as model:
        environment = {"CAIRN_ANSWER_URL": f"{model.url}/v1", "CAIRN_ANSWER_MODELS": "paid", "CAIRN_WORLD": "test-v2"}
        with product.serve(cwd=tmp_path, env=environment) as server:
            run = ask(f"{server.url}/v1/evidence", {"question": "Where was Persen Golney born?"}, headers=headers).json
            assert run["bundle"]["claims"], "there is something to answer from"
            address = f"{server.url}/api/runs/{run['id']}"
            server.running.wait_for(lambda: ask(address, headers=headers).status == 200)
            yield server, f"{address}/answer_with", headers


def test_an_answer_counts_as_a_run_of_its_key(product: Product, tmp_path: Path) -> None:
    slow = Slow()
    with scene(product, tmp_path, slow, "--concurrent-runs", "1") as (_server, address, headers):
        first = threading.Thread(target=ask, args=(address, {"model": "paid"}), kwargs={"headers": headers})
        first.start()
        assert slow.requested.acquire(timeout=30)
        more = [ask(address, {"model": "paid"}, headers=headers, seconds=5) for _ in range(3)]
        slow.let.set()
        first.join()
    assert [answer.status for answer in more] == [429, 429, 429]
    assert "it has 1 active runs, of at most 1" in more[0].error["message"]


def test_its_tokens_are_those_of_its_key(product: Product, tmp_path: Path) -> None:
    slow = Slow()
    slow.let.set()
    with scene(product, tmp_path, slow, "--tokens-per-day", "900000") as (server, address, headers):
        assert ask(address, {"model": "paid"}, headers=headers).json["downstream"]["answer"] == "Here"
        again = [
            ask(address, {"model": "paid"}, headers=headers),
            ask(f"{server.url}/v1/chat/completions", QUESTION, headers=headers),
        ]
    assert [answer.status for answer in again] == [429, 429]
    assert "tokens today" in again[0].error["message"]


def test_it_ends_when_its_client_leaves(product: Product, tmp_path: Path) -> None:
    slow = Slow()
    with scene(product, tmp_path, slow) as (_, address, headers):
        request = Request(address, data=b'{"model":"paid"}', headers=headers | {"content-type": "application/json"})
        with suppress(TimeoutError):
            urlopen(request, timeout=2)
        assert slow.requested.acquire(timeout=30)
        assert slow.left.wait(20), "the model goes on for no one"
