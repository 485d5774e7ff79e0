"""An OpenAI-compatible endpoint of an attacker's, that says whatever bytes it is given; and Cairn in front of it."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.attacks.client import ask
from tests.attacks.product import Hostile, Product, Served, hostile_server, respond

Chat = Callable[[BaseHTTPRequestHandler], None]
CHATS = {"CAIRN_ENDPOINT": "chat"}
"""The endpoint is not probed for anything better."""
GOOD = "<think>x</think><answer>Rome</answer>"


def completion(content: object = GOOD, *, usage: str = "{}", finish: str = '"stop"') -> bytes:
    """A whole chat completion; `usage` and `finish` are JSON as it is sent."""
    message = json.dumps({"role": "assistant", "content": content})
    return f'{{"choices": [{{"message": {message}, "finish_reason": {finish}}}], "usage": {usage}}}'.encode()


@contextmanager
def chat_endpoint(chat: Chat) -> Generator[Hostile]:
    """A server whose list of models is good and whose chats are the attack."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.command == "GET":
            respond(handler, b'{"data": [{"id": "m"}]}')
        else:
            chat(handler)

    with hostile_server(answer) as server:
        yield server


def at(endpoint: Hostile) -> tuple[str, ...]:
    """The options that make an endpoint the policy."""
    return ("--base-url", f"{endpoint.url}/v1", "--model", "m", "--corpus", "documents")


@contextmanager
def in_front_of(endpoint: Hostile, product: Product, folder: Path, *, base_url: str = "") -> Generator[Served]:
    """`cairn serve` whose policy is that endpoint, with one document to search."""
    documents(folder)
    named = [base_url if option == f"{endpoint.url}/v1" and base_url else option for option in at(endpoint)]
    store = CHATS | {"CAIRN_STORE": f"sqlite:///{folder / 'runs.db'}"}
    with product.serve(*named, cwd=folder, env=store) as server:
        yield server


def documents(folder: Path) -> None:
    (folder / "documents").mkdir(exist_ok=True)
    (folder / "documents" / "rome.txt").write_text("Rome is the capital of Italy.", encoding="utf-8")


def chat(server: Served, question: str = "What is the capital of Italy?", **more: Any) -> Any:
    """One chat completion of Cairn's, with its status."""
    body = {"model": "cairn", "messages": [{"role": "user", "content": question}]}
    return ask(f"{server.url}/v1/chat/completions", body | more, seconds=100)
