"""Finding 24: what Cairn keeps for its user could be read by everyone on the machine."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.product import Product

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes are those of POSIX")


def readable_by_others(folder: Path) -> Iterator[str]:
    """Each file of a home that others may read, with its folders taken alone."""
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            yield str(path.relative_to(folder))


@pytest.fixture(autouse=True)
def the_usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_the_store_is_the_users_alone(product: Product, tmp_path: Path) -> None:
    with product.serve(cwd=tmp_path):
        store = next(product.home.rglob("runs.sqlite"))
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in store.parent.iterdir()}
        wrong = {path: oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)}
    assert {f"runs.sqlite{log}" for log in ("", "-wal", "-shm")} <= {path.name for path in modes}
    assert not wrong
    assert stat.S_IMODE(store.parent.stat().st_mode) == 0o700
    assert not list(readable_by_others(product.home))


def test_an_older_store_is_closed_to_others(product: Product, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    store.touch(0o644)
    with product.serve(cwd=tmp_path, env={"CAIRN_STORE": str(store)}):
        assert stat.S_IMODE(store.stat().st_mode) == 0o600


def test_the_index_of_documents_is_the_users_alone(product: Product, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Frank Herbert wrote Dune.", encoding="utf-8")
    product.run("ask", "Who wrote Dune?", "--corpus", "docs", cwd=tmp_path)
    assert any(product.home.rglob("indexes/*/*")), "an index was made"
    assert not list(readable_by_others(product.home))


def test_what_is_trusted_is_the_users_alone(product: Product, tmp_path: Path) -> None:
    (tmp_path / "cairn.toml").write_text("port = 9000\n", encoding="utf-8")
    assert product.run("trust", cwd=tmp_path).returncode == 0
    assert list(product.home.rglob("trusted.json"))
    assert not list(readable_by_others(product.home))


@pytest.mark.parametrize("kind", ["others may write", "a link", "another user's"])
def test_a_store_that_others_could_change_is_refused(product: Product, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o700)
    match kind:
        case "others may write":
            folder.chmod(0o777)
            says = "other users may write into"
        case "a link":
            (folder / "runs.db").symlink_to(tmp_path / "elsewhere.db")
            says = "is a link"
        case _:
            if os.geteuid() != 0:
                pytest.skip("only root can give a file away")
            (folder / "runs.db").touch()
            os.chown(folder / "runs.db", 4242, 4242)
            says = "belongs to another user"
    done = product.run("serve", "--port", "0", cwd=tmp_path, env={"CAIRN_STORE": str(folder / "runs.db")}, seconds=30)
    assert done.returncode == 1
    assert says in done.stderr
    assert not (tmp_path / "elsewhere.db").exists()
