"""Real questions, where the large data sets are: retrieval, and the whole agent, on 2WikiMultiHopQA."""

import json
from pathlib import Path

import pytest

from agent.cli import run
from agent.policies.scripted import ScriptedPolicy
from agent.settings import load_settings
from train.evaluation.session import Evaluation

SET = load_settings().data / "qa_2wiki_train500"

pytestmark = pytest.mark.skipif(
    not SET.is_dir(), reason=f"the data set is not here; CAIRN_DATA names its folder ({SET})"
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("index") / "2wiki")
    assert run(["index", "build", str(SET), "--out", folder]) == 0
    return folder


def test_all_gold_passages_are_in_the_first_ten_often_enough(index: str, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    assert run(["index", "batch", index, "--questions", str(SET / "questions.jsonl"), "--topk", "10", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["n"] == 500
    assert figures["all_gold_10"] >= 0.44


@pytest.mark.slow
def test_all_questions_run_through_the_whole_agent(index: str):
    def search_then_say_yes(context: str) -> str:
        question = context.strip().splitlines()[-1].removeprefix("Question: ")
        return "<answer>yes</answer>" if "<information>" in context else f'<search>\nA: "{question}" (web)\n</search>'

    settings = load_settings(corpus=Path(index))
    figures = Evaluation(settings, SET / "questions.jsonl", policy=ScriptedPolicy(search_then_say_yes)).run()
    assert (figures["questions"], figures["n"], figures["infrastructure"], figures["answered"]) == (500, 500, 0, 500)
    assert figures["gold_found"] > 0.5
    assert 0 < figures["em"] < 0.2
