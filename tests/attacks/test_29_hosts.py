"""Finding 29: odd spellings of the Host header were read as this machine's name."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

from tests.attacks.product import Product, Served

REFUSED = [
    "127.0.0.1.", "localhost.", "user@127.0.0.1", "user:word@127.0.0.1:80", "127.0.0.1:", "127.0.0.1:80:80",
    "127.0.0.1:junk", "127.0.0.1:99999", "127.0.0.1/evil.example", "127.0.0.1?x", "127.0.0.1#x", "127.0.0.1 evil",
    "evil.example@127.0.0.1", "[::1", "::1", "[::1]evil", "[::1%25lo]", "127.1", "0x7f.1", "2130706433", "evil.example",
    "127.0.0.1,evil.example", "[127.0.0.1]", "http://127.0.0.1", "*", "%6cocalhost", "", "\xb9\xb2\xb7.0.0.1",
]  # fmt: skip
SERVED = ["127.0.0.1", "127.0.0.1:1", "localhost:65535", "LOCALHOST", "[::1]", "[::1]:80"]


def status(server: Served, host: str, target: str = "/healthz") -> int:
    """Of one request as it is written here, which no client library would send."""
    place = urlsplit(server.url)
    request = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((place.hostname, place.port), timeout=20) as connection:
        connection.sendall(request.encode("latin-1"))
        answer = connection.makefile("rb").readline().split()
    return int(answer[1]) if answer else 0


def test_only_names_with_a_port_are_hosts(product: Product, tmp_path: Path) -> None:
    with product.serve(cwd=tmp_path) as server:
        assert {host: status(server, host) for host in REFUSED if status(server, host) not in (400, 403)} == {}
        assert {host: status(server, host) for host in SERVED if status(server, host) != 200} == {}


def test_a_whole_url_in_the_place_of_a_path_is_refused(product: Product, tmp_path: Path) -> None:
    with product.serve(cwd=tmp_path) as server:
        targets = ["http://evil.example/healthz", "http://127.0.0.1/healthz", "evil.example:443", "*"]
        assert {target: status(server, "127.0.0.1", target) for target in targets} == dict.fromkeys(targets, 400)


def test_where_other_machines_may_ask_any_name_is_a_host_and_nothing_else(product: Product, tmp_path: Path) -> None:
    with product.serve("--host", "0.0.0.0", "--insecure", cwd=tmp_path) as server:
        assert status(server, "cairn.example:8000") == 200
        assert {status(server, host) for host in ("a@cairn.example", "cairn.example:x", "cairn.example/x")} == {403}
