"""Finding 17: one file that stops the whole build."""

import json
from pathlib import Path

from tests.attacks.product import Product

HIGH = b"<p>caf\xe9 \xff</p>"


BAD = {
    **{f"{codec}.html": b'<meta charset="%s">' % codec.encode() + HIGH for codec in ("hex", "zlib", "rot13", "idna")},
    **{f"{codec}.txt": b'<meta charset="%s">' % codec.encode() + HIGH for codec in ("undefined", "punycode", "uu")},
    "deep.jsonl": b"[" * 200_000,
    "deeper.jsonl": b'{"id": "x", "text": ' + b"[" * 200_000,
    "objects.jsonl": b'{"a":' * 100_000,
    "number.jsonl": b'{"id": ' + b"9" * 200_000 + b', "text": "x"}',
    "line.jsonl": b'{"id": "x", "text": "' + b"a" * (17 << 20),
    "nested.html": b"<div>" * 200_000 + b"x",
    "half.pdf": b"%PDF-1.7\n1 0 obj\n" + b"<<" * 100_000,
    "surrogate.jsonl": b'{"id": "\\ud800", "text": "x"}',
}


def test_the_build_goes_on_without_them(product: Product, tmp_path: Path) -> None:
    """Any of them that stopped the build would stop it for all: it goes on, and names each that it left out."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("An owl hunts.", encoding="utf-8")
    for name, content in BAD.items():
        (tmp_path / "docs" / name).write_bytes(content)
    done = product.run("index", "build", "docs", "--out", "index", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    skipped = [skip["name"] for skip in json.loads(done.stdout)["skipped"]]
    assert len(skipped) == len(set(skipped))
    readable = {name for name, content in BAD.items() if HIGH in content or name == "nested.html"}
    assert set(BAD) - readable <= set(skipped) <= set(BAD)
    assert "Traceback" not in done.stderr
    assert "An owl hunts" in product.run("index", "search", "index", "owl", cwd=tmp_path).stdout


def test_a_name_that_is_no_text_and_folders_without_end_cost_nothing(product: Product, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("An owl hunts.", encoding="utf-8")
    with open(bytes(docs) + b"/odd\xff\n.txt", "wb") as odd:
        odd.write(b"A heron waits.")
    deep = [docs]
    for _ in range(1200):
        deep.append(deep[-1] / "d")
        deep[-1].mkdir()
    done = product.run("index", "build", "docs", "--out", "index", "--json", cwd=tmp_path)
    for folder in reversed(deep[1:]):
        folder.rmdir()  # what clears the folder away does so by recursion
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["documents"] == 2
