"""Finding 22: what an endpoint or a file's name says reached the terminal with escape sequences."""

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from unicodedata import category

import pytest

from tests.attacks.product import Product, hostile_server, respond

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31mred\u202egnp.exe"


def obeyed(text: str) -> set[str]:
    return {character for character in text if character not in "\n\t" and category(character) in {"Cc", "Cf"}}


def refusing(handler: BaseHTTPRequestHandler) -> None:
    body = {"error": {"message": f"no such model {EVIL}", "type": EVIL, "code": EVIL}}
    respond(handler, json.dumps(body, ensure_ascii=False).encode(), status=404)


@pytest.mark.parametrize("options", [(), ("--json",), ("--debug",)])
def test_an_error_of_an_endpoint_cannot_steer_the_terminal(
    product: Product, tmp_path: Path, options: tuple[str, ...]
) -> None:
    before, after = (("--debug",), ()) if options == ("--debug",) else ((), options)
    with hostile_server(refusing) as server:
        endpoint = ("--base-url", f"{server.url}/v1", "--model", "m")
        done = product.run(
            *before, "ask", "Who wrote Dune?", *endpoint, *after, cwd=tmp_path, env={"CAIRN_ENDPOINT": "chat"}
        )
    assert server.requests
    said = done.stdout + done.stderr
    assert said.strip()
    assert not obeyed(said)


@pytest.mark.parametrize(
    "command", [("protocol", "show"), ("index", "search", "x", "--index"), ("ask", "x", "--config")]
)
def test_the_name_of_a_file_cannot_steer_the_terminal(
    product: Product, tmp_path: Path, command: tuple[str, ...]
) -> None:
    done = product.run(*command, f"a{EVIL}.toml", cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert done.stderr.strip()
    assert not obeyed(done.stdout + done.stderr)


def test_a_documents_text_cannot_steer_the_terminal(product: Product, tmp_path: Path) -> None:
    row = {"id": EVIL, "title": f"Dune {EVIL}", "text": f"Frank Herbert wrote Dune. {EVIL}", "url": f"http://x/{EVIL}"}
    (tmp_path / "docs.jsonl").write_text(json.dumps(row), encoding="utf-8")
    assert product.run("index", "build", "docs.jsonl", "--out", "index", cwd=tmp_path).returncode == 0
    done = product.run("index", "search", "index", "dune", cwd=tmp_path)
    assert "Frank Herbert" in done.stdout, done.stderr
    assert not obeyed(done.stdout + done.stderr)
