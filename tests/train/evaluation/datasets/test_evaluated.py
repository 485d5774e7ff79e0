"""A published file from its paragraphs to its figures: a corpus, an index, and the agent over the questions."""

from pathlib import Path

import pytest

from agent.cli import run
from agent.policies.scripted import ScriptedPolicy
from agent.settings import load_settings
from train.evaluation.datasets import write_corpus
from train.evaluation.session import Evaluation

FILES = Path(__file__).parents[3] / "fixtures" / "datasets"


def search_then_answer(context: str) -> str:
    searched = '<search>\nA: "builder of Tarn Harbour" (web)\nB: "Ilse Marn engineer born" (web)\n</search>'
    return "<answer>Dell</answer>" if "<information>" in context else searched


@pytest.mark.parametrize(
    "name", ["hotpotqa.json", "2wiki/dev.json", "musique.jsonl", "morehopqa.json", "flashrag.jsonl"]
)
def test_a_published_file_is_evaluated_over_its_own_paragraphs(tmp_path: Path, name: str):
    write_corpus(FILES / name, tmp_path / "corpus.jsonl")
    assert run(["index", "build", str(tmp_path / "corpus.jsonl"), "--out", str(tmp_path / "index")]) == 0
    settings = load_settings(corpus=tmp_path / "index")
    out = tmp_path / "out"
    Evaluation(settings, FILES / name, policy=ScriptedPolicy(search_then_answer), out=out).run()
    results = [
        line for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines() if '"gold_found":1.0' in line
    ]
    assert any('"gold_in_corpus":1.0' in line for line in results)
