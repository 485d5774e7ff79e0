"""Finding 18: one address that is none, in a corpus, fails every filtered search and the evaluation."""

import json
import subprocess
from pathlib import Path

from tests.attacks.product import Product

BAD = ("http://[bad", "https://[::1", "http://a]b/", "//[", "http://\u2100.example/", "http://x:99999999/")


def test_a_filtered_search_and_an_evaluation_go_on(product: Product, tmp_path: Path) -> None:
    rows = [{"id": f"b{n}", "text": f"An owl hunts {n}.", "url": url} for n, url in enumerate(BAD)]
    rows.append({"id": "good", "text": "An owl hunts well.", "url": "https://www.example.org/owl"})
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    done = product.run("index", "build", "docs.jsonl", "--out", "index", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    code = (
        "import pathlib, agent.plan as p, agent.sources.corpus.source as s\n"
        "found = s.CorpusSource(pathlib.Path('index')).find('owl', limit=9, filters=[p.Filter(name='site', value='example.org')])\n"
        "print([passage.id for passage in found])\n"
    )
    searched = subprocess.run(
        [str(product.python), "-P", "-c", code],
        env=product.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert searched.stdout.strip() == "['good']", searched.stderr
    question = {"id": "1", "question": "Who hunts?", "answers": ["owl"], "supporting": [BAD[0], "good"]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(question), encoding="utf-8")
    evaluated = product.run(
        "eval",
        "--questions",
        "questions.jsonl",
        "--corpus",
        "index",
        "--out",
        "run",
        "--json",
        cwd=tmp_path,
        env={"CAIRN_BUDGETS__POLICY_TOKENS": "400"},
        seconds=100,
    )
    assert evaluated.returncode == 0, evaluated.stderr
    assert "Traceback" not in evaluated.stderr
