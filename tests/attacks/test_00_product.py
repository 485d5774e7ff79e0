"""Not an attack: the product that the others attack answers, and its home is its own."""

import socket
import subprocess
from pathlib import Path

import pytest

from tests.attacks.product import Product, free_port


def test_the_product_answers_from_an_empty_home(product: Product, tmp_path: Path) -> None:
    done = product.run("--version", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cairn" in done.stdout.lower()


def test_the_server_answers_and_ends(product: Product, tmp_path: Path) -> None:
    with product.serve(cwd=tmp_path) as server:
        assert server.running.process.poll() is None


def test_a_command_has_a_folder_an_environment_and_a_status_of_its_own(product: Product, tmp_path: Path) -> None:
    for fresh in (False, True):
        done = product.run("ask", cwd=tmp_path, fresh=fresh)
        assert (done.returncode, "Missing argument" in done.stderr) == (2, True), done.stderr
        (tmp_path / "cairn.toml").write_text("no settings", encoding="utf-8")
        done = product.run("doctor", cwd=tmp_path, fresh=fresh)
        assert "cairn.toml" in done.stdout + done.stderr
        (tmp_path / "cairn.toml").unlink()
        done = product.run("doctor", cwd=tmp_path, env={"CAIRN_BUDGETS__ROUNDS": "many"}, fresh=fresh)
        assert "rounds" in done.stdout + done.stderr


def test_a_command_that_takes_too_long_is_ended(product: Product, tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(subprocess.TimeoutExpired):
        product.run("serve", "--port", str(port), cwd=tmp_path, seconds=1.5)
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))
