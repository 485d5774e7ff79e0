"""Finding 5, the fields' half: a document whose url, title, date or id is as long as it likes."""

import json
from pathlib import Path

import pytest

from tests.attacks.product import Product

LONG = "<" + " " * 28_000


@pytest.mark.parametrize("field", ["id", "title", "url"])
def test_a_record_with_an_endless_field_is_left_out_and_named(product: Product, tmp_path: Path, field: str) -> None:
    good = {"id": "a", "title": "Owls", "text": "An owl hunts."}
    bad = {"id": "b", "text": "The heron waits."} | {field: LONG}
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, (good, bad))), encoding="utf-8")
    done = product.run("index", "build", "docs.jsonl", "--out", "index", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"line 2: the field '{field}' cannot be used: String should have at most" in done.stderr
    found = product.run("index", "search", "index", "owl heron", "--json", cwd=tmp_path)
    assert [passage["id"] for passage in json.loads(found.stdout)["passages"]] == ["a"]


def test_an_endless_date_is_left_out_and_its_record_is_kept(product: Product, tmp_path: Path) -> None:
    record = {"id": "a", "title": "Owls", "text": "An owl hunts.", "date": f"2026-01-01 {LONG}>"}
    (tmp_path / "docs.jsonl").write_text(json.dumps(record), encoding="utf-8")
    done = product.run("index", "build", "docs.jsonl", "--out", "index", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = product.run("index", "search", "index", "owl", "--json", cwd=tmp_path)
    (passage,) = json.loads(found.stdout)["passages"]
    assert (passage["id"], passage["date"]) == ("a", "")


def test_a_heading_of_a_hundred_thousand_characters_is_no_title_of_each_passage(
    product: Product, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    heading = f"# {'word ' * 20_000}"
    (tmp_path / "docs" / "a.md").write_text(f"{heading}\n" + "The owl hunts at night. " * 20_000, encoding="utf-8")
    (tmp_path / "docs" / "b.md").write_text(f"# a{' ' * 5_000}b{' ' * 5_000}c\nThe heron.", encoding="utf-8")
    done = product.run("index", "build", "docs", "--out", "index", cwd=tmp_path, seconds=30)
    assert done.returncode == 0, done.stderr
    assert sum(path.stat().st_size for path in (tmp_path / "index").rglob("*.jsonl")) < 3_000_000
