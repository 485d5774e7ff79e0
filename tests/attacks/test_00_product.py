"""Not an attack: the product that the others attack answers, and its home is its own."""

from pathlib import Path

from tests.attacks.product import Product


def test_the_product_answers_from_an_empty_home(product: Product, tmp_path: Path) -> None:
    done = product.run("--version", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cairn" in done.stdout.lower()


def test_the_server_answers_and_ends(product: Product, tmp_path: Path) -> None:
    with product.serve(cwd=tmp_path) as server:
        assert server.running.process.poll() is None
