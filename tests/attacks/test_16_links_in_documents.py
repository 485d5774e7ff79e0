"""Finding 16: links, pipes and sockets inside a folder of documents."""

import json
import os
import socket
from pathlib import Path

from tests.attacks.product import Product

SECRET = "correct horse battery staple"


def test_what_links_lead_to_is_not_searchable_and_nothing_hangs(product: Product, tmp_path: Path) -> None:
    home, docs = tmp_path / "private", tmp_path / "docs"
    home.mkdir()
    docs.mkdir()
    (home / "key.txt").write_text(SECRET, encoding="utf-8")
    (docs / "a.txt").write_text("An owl hunts.", encoding="utf-8")
    (docs / "key.txt").symlink_to(home / "key.txt")
    (docs / "folder").symlink_to(home, target_is_directory=True)
    (docs / "zero.txt").symlink_to("/dev/zero")
    (docs / "zero.jsonl").symlink_to("/dev/zero")
    (docs / "gone.md").symlink_to(tmp_path / "nowhere")
    (docs / "loop.md").symlink_to(docs / "loop.md")
    (docs / "loop").symlink_to(docs, target_is_directory=True)
    os.mkfifo(docs / "pipe.html")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(docs / "talk.md"))
        done = product.run("index", "build", "docs", "--out", "index", "--json", cwd=tmp_path, seconds=30)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["documents"] == 1
    why = {skip["name"]: skip["why"] for skip in printed["skipped"]}
    links = {"key.txt", "folder", "zero.txt", "zero.jsonl", "gone.md", "loop.md", "loop"}
    assert {name for name, reason in why.items() if "symbolic link" in reason} == links
    assert why["pipe.html"].startswith("it is a pipe")
    assert why["talk.md"] == "it is a socket, not a file"
    found = product.run("index", "search", "index", SECRET, cwd=tmp_path)
    assert SECRET not in found.stdout


def test_a_link_that_the_user_names_is_followed(product: Product, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("An owl hunts.", encoding="utf-8")
    (tmp_path / "docs").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "b.txt").symlink_to(tmp_path / "real" / "a.txt")
    for name in ("docs", "b.txt"):
        assert product.run("index", "build", name, "--out", f"index-{name}", cwd=tmp_path).returncode == 0
        assert "An owl" in product.run("index", "search", f"index-{name}", "owl", cwd=tmp_path).stdout
