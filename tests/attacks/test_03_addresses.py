"""Finding 3: a folder's settings got the keys and files of the user: addresses, and texts of protocol files."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.attacks.product import Hostile, Product, hostile_server, respond

KEY = "key-of-the-user-7b1f"
ADDRESSES = (
    "base_url",
    "tavily_url",
    "serper_url",
    "brave_url",
    "gnews_url",
    "searxng_url",
    "filter_url",
    "answer_url",
)
KEYS = {f"CAIRN_{name}_KEY": KEY for name in ("API", "TAVILY", "SERPER", "BRAVE", "GNEWS", "FILTER", "ANSWER")}


def nothing(handler: BaseHTTPRequestHandler) -> None:
    respond(handler, b"{}")


def sent(server: Hostile) -> str:
    return repr(server.requests)


@pytest.mark.parametrize("command", [("ask", "Who wrote Dune?"), ("doctor", "--probe")])
def test_a_folder_gets_no_key(product: Product, tmp_path: Path, command: tuple[str, ...]) -> None:
    with hostile_server(nothing) as server:
        lines = [f'{name} = "{server.url}/v1"' for name in ADDRESSES]
        (tmp_path / "cairn.toml").write_text("\n".join([*lines, 'model = "m"', "live = true"]), encoding="utf-8")
        done = product.run(*command, cwd=tmp_path, env=KEYS)
    assert not server.requests
    assert done.returncode == (2 if command[0] == "ask" else 1)
    said = done.stdout + done.stderr
    assert "sets base_url, tavily_url" in said
    assert "cairn trust ./cairn.toml" in said


@pytest.mark.slow
def test_consent_ends_when_the_file_changes(product: Product, tmp_path: Path) -> None:
    file = tmp_path / "cairn.toml"
    with hostile_server(nothing) as server:
        file.write_text(f'base_url = "{server.url}/v1"\nmodel = "m"\n', encoding="utf-8")
        assert product.run("trust", cwd=tmp_path).returncode == 0
        product.run("ask", "Who wrote Dune?", cwd=tmp_path, env=KEYS)
        assert KEY in sent(server), "who consents to an address sends the key there"
        server.requests.clear()
        file.write_text(f'base_url = "{server.url}/other/v1"\nmodel = "m"\n', encoding="utf-8")
        done = product.run("ask", "Who wrote Dune?", cwd=tmp_path, env=KEYS)
        assert not server.requests
        assert done.returncode == 2
        assert "It has changed since you trusted it." in done.stderr
        moved = tmp_path / "moved"
        moved.mkdir()
        assert product.run("trust", cwd=tmp_path).returncode == 0
        (moved / "cairn.toml").symlink_to(file)
        assert product.run("ask", "Who wrote Dune?", cwd=moved, env=KEYS).returncode == 2, "another place, no consent"
        assert not server.requests


def test_a_key_is_not_sent_unencrypted_to_another_machine(product: Product, tmp_path: Path) -> None:
    address = "http://192.0.2.1:9/v1"  # of a network that is nowhere
    done = product.run("ask", "Who wrote Dune?", "--base-url", address, "--model", "m", cwd=tmp_path, env=KEYS)
    assert done.returncode == 1
    assert "base_url is http://192.0.2.1, and a key would be sent there unencrypted" in done.stderr


PROTOCOL = """
name = "mine"
plan = "query"
{line}

[tags]
thought = "think"
search = "search"
information = "information"
answer = "answer"
"""


@pytest.mark.parametrize("way", ["absolute", "up", "link"])
@pytest.mark.parametrize("key", ["prompt_file", "system_file", "instructions_file"])
def test_a_protocol_file_sends_no_file_of_another_folder(product: Product, tmp_path: Path, way: str, key: str) -> None:
    secret, folder = tmp_path / "secret", tmp_path / "protocol"
    secret.write_text(KEY, encoding="utf-8")
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    name = {"absolute": str(secret), "up": "../secret", "link": "link"}[way]
    (folder / "mine.toml").write_text(PROTOCOL.format(line=f'{key} = "{name}"'), encoding="utf-8")
    with hostile_server(nothing) as server:
        endpoint = ("--base-url", f"{server.url}/v1", "--model", "m", "--protocol", "mine.toml")
        done = product.run("ask", "Who wrote Dune?", *endpoint, cwd=folder)
    assert KEY not in sent(server)
    assert done.returncode == 1
    assert f"{key} names {name!r}, which is not in its own folder" in done.stderr
