"""Finding 1: a cache folder of a stranger's ran code, because its rows were unpickled."""

import os
import pickle
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.attacks.product import Product

OLD_SCHEMA = """
CREATE TABLE Settings (key TEXT NOT NULL UNIQUE, value);
CREATE TABLE Cache (rowid INTEGER PRIMARY KEY, key BLOB, raw INTEGER, store_time REAL, expire_time REAL,
 access_time REAL, access_count INTEGER DEFAULT 0, tag BLOB, size INTEGER DEFAULT 0, mode INTEGER DEFAULT 0,
 filename TEXT, value BLOB);
CREATE UNIQUE INDEX Cache_key_raw ON Cache(key, raw);
"""
PICKLED = 4
"""How the library that kept the cache marked a row that is a pickle."""
LOOK = """
import asyncio, sys
from agent.sources.resilience.store import open_store
async def main():
    store = open_store(sys.argv[1])
    print("found", await store.get("x"))
    await store.put("x", b"new", seconds=100)
    print("then", await store.get("x"))
    await store.aclose()
asyncio.run(main())
"""


class Trap:
    """Unpickling it makes a folder."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, (str(self.mark),))


def plant(folder: Path, mark: Path) -> None:
    folder.mkdir(mode=0o700)
    for part in range(8):
        (folder / f"{part:03}").mkdir()
        plant_rows(folder / f"{part:03}" / "cache.db", mark)
    assert len(list(folder.rglob("cache.db"))) == 8


def plant_rows(file: Path, mark: Path) -> None:
    with sqlite3.connect(file) as database:
        database.executescript(OLD_SCHEMA)
        row = ("x", 1, 0.0, None, 0.0, 0, None, 0, PICKLED, None, pickle.dumps(Trap(mark)))
        database.execute(f"INSERT INTO Cache VALUES (NULL, {', '.join('?' * len(row))})", row)
    database.close()


def look(product: Product, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [str(product.python), "-c", LOOK, str(folder)]
    return subprocess.run(
        command, env=product.environment, cwd=folder.parent, capture_output=True, text=True, timeout=60
    )


def test_a_pickle_in_the_cache_is_dropped_and_the_cache_works(product: Product, tmp_path: Path) -> None:
    folder, mark = tmp_path / "searches", tmp_path / "mark"
    plant(folder, mark)
    done = look(product, folder)
    assert not mark.exists(), "the pickle ran"
    assert not list(folder.rglob("cache.db"))
    assert done.stdout.splitlines() == ["found None", "then b'new'"], done.stderr


def test_a_folder_may_not_choose_the_cache(product: Product, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    plant(tmp_path / ".c", mark)
    (tmp_path / "cairn.toml").write_text('cache = "./.c"\nsearxng_url = "http://127.0.0.1:9"\n', encoding="utf-8")
    done = product.run("ask", "Who directed Aurora Falls?", cwd=tmp_path)
    assert done.returncode == 2
    assert "sets cache, searxng_url" in done.stderr
    assert "cairn trust ./cairn.toml" in done.stderr
    assert not mark.exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes are those of POSIX")
def test_a_cache_that_others_can_write_to_is_left_alone(product: Product, tmp_path: Path) -> None:
    folder, mark = tmp_path / "searches", tmp_path / "mark"
    plant(folder, mark)
    folder.chmod(0o777)
    if os.geteuid() == 0:
        os.chown(folder, 4242, 4242)  # root's own folders are the administrator's
    done = look(product, folder)
    assert not mark.exists()
    assert "searches continue without it" in done.stderr
    assert not (folder / "searches.sqlite").exists()
