"""Finding 30: names of questions and settings stood as raw HTML and as links in report.md and compare.md."""

import json
from pathlib import Path

from tests.attacks.product import Product

HTML = "<img src=x onerror=alert(1)>"
LINK = "[here](javascript:alert(2))"


def test_reports_hold_no_html_and_no_links_of_a_stranger(product: Product, tmp_path: Path) -> None:
    row = {"id": f"q{HTML}", "question": "Where was Persen Golney born?", "answers": ["a"], "type": HTML + LINK}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    for run in ("one", "two"):
        folder = tmp_path / run
        done = product.run("eval", "--questions", "questions.jsonl", "--out", folder, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        report = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        (folder / "run.json").write_text(json.dumps(report | {"note": HTML + LINK + run}), encoding="utf-8")
        assert product.run("eval-report", folder, cwd=tmp_path).returncode == 0
    done = product.run("eval-compare", "one", "two", "--out", "both", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("one/report.md", "both/compare.md"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "img src" in text, f"{name} names it"
        assert "<img" not in text.replace("\\<img", "")
        assert "[here](" not in text.replace("\\[here\\](", "")
