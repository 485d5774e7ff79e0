"""`cairn eval`, end to end, against EM, F1 and cover computed here again from the published definitions.

Rajpurkar et al. (2016) for normalisation, EM and F1; cover is whether a normalised gold answer is in the normalised
answer as whole words. The one thing that is not theirs: a text of articles alone keeps them. Nothing of the evaluation's
own scoring is used.
"""

import json
import re
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import agent.world
from agent.cli import run
from agent.policies.scripted import ScriptedPolicy
from agent.settings import CairnSettings, load_settings

SET = (load_settings().data / "qa_2wiki_train500").resolve()


def words(text: str) -> list[str]:
    kept = "".join(" " if c.isspace() else c for c in text.lower() if c not in string.punctuation)
    found = [word for word in kept.split(" ") if word]
    return [word for word in found if word not in ("a", "an", "the")] or found


def em(said: str, gold: str) -> float:
    return float(words(said) == words(gold) != [])


def f1(said: str, gold: str) -> float:
    predicted, wanted = words(said), words(gold)
    left = list(wanted)
    same = 0
    for word in predicted:
        if word in left:
            left.remove(word)
            same += 1
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


def cover(said: str, gold: str) -> float:
    pattern = r"\s".join(re.escape(word) for word in words(gold))
    return float(bool(pattern) and bool(re.search(rf"(?<!\S){pattern}(?!\S)", " ".join(words(said)))))


def recomputed(results: Sequence[dict[str, Any]], golds: dict[str, list[str]]) -> dict[str, float]:
    """The means over what was scored and has an answer; the gold answers come from the list itself."""
    scored = [r for r in results if r["status"] == "scored" and golds[r["id"]]]
    return {
        name: sum(max(score(r["prediction"], gold) for gold in golds[r["id"]]) for r in scored) / len(scored)
        for name, score in (("em", em), ("f1", f1), ("cover", cover))
    }


def reported(results: Sequence[dict[str, Any]], golds: dict[str, list[str]]) -> dict[str, float]:
    scored = [r for r in results if r["status"] == "scored" and golds[r["id"]]]
    return {name: sum(r["metrics"][name] for r in scored) / len(scored) for name in ("em", "f1", "cover")}


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The figures, and the results in the folder `out`."""
    capsys.readouterr()
    assert run(["eval", *arguments, "--out", "out", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    return figures, [json.loads(line) for line in Path("out/results.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("world", ["test-v2"])
@pytest.mark.parametrize("limit", [10, pytest.param(10_000, marks=pytest.mark.long)], ids=["sample", "whole"])
def test_the_figures_of_a_frozen_list_are_those_of_an_independent_computation(
    limit: int, world: str, capsys: pytest.CaptureFixture[str]
):
    figures, results = evaluated(capsys, "--world", world, "--limit", str(limit), "--sample", "6")
    lists = Path(agent.world.__file__).parent / "lists" / world / "questions.jsonl"
    rows = [json.loads(line) for line in lists.read_text("utf-8").splitlines()]
    kept = {result["id"] for result in results}
    golds = {row["id"]: row["answers"] for row in rows if row["id"] in kept}
    assert figures["questions"] == figures["n"] == len(results) == len(golds) == min(limit, len(rows))
    mine = recomputed(results, golds)
    assert reported(results, golds) == pytest.approx(mine)
    assert not all(golds.values()), "where there is no answer, all three say whether the agent said so"
    gave_up = sum(r["abstained"] for r in results if not golds[r["id"]])
    answered = sum(bool(gold) for gold in golds.values())
    whole = {name: (mine[name] * answered + gave_up) / len(golds) for name in mine}
    assert {name: figures[name] for name in whole} == pytest.approx(whole, abs=5.1e-5)
    assert 0 < mine["em"] <= mine["cover"] <= 1
    assert mine["em"] <= mine["f1"]


@pytest.mark.skipif(not SET.is_dir(), reason=f"the data set is not here; CAIRN_DATA names its folder ({SET})")
def test_the_figures_of_500_real_questions_are_those_of_an_independent_computation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def search_and_say_a_title(context: str) -> str:
        """Right at times: "yes", or the title of the first passage, or two of them."""
        question = context.strip().splitlines()[-1].removeprefix("Question: ")
        shown = re.findall(r"^\[\d+\] [^|·]*·[^|·]*· ([^—\n]+) — ", context, re.MULTILINE)
        if "<information>" not in context:
            return f'<search>\nA: "{question}" (web)\n</search>'
        question = next(line for line in context.splitlines() if line.startswith("Question: "))
        if re.match(r"Question: (Are|Is|Do|Does|Did|Were|Was|Have)\b", question):
            return "<answer>The yes.</answer>"
        return f"<answer>{' and '.join(shown[: 1 + len(question) % 2])}</answer>"

    def build(settings: CairnSettings, *, sources: Sequence[str]) -> ScriptedPolicy:
        return ScriptedPolicy(search_and_say_a_title)

    monkeypatch.setattr("agent.build.agent.build_policy", build)
    assert run(["index", "build", str(SET), "--out", "index"]) == 0
    figures, results = evaluated(capsys, "--questions", str(SET / "questions.jsonl"), "--corpus", "index")
    rows = [json.loads(line) for line in (SET / "questions.jsonl").read_text("utf-8").splitlines()]
    golds = {row["id"]: row["answers"] for row in rows}
    assert figures["questions"] == figures["n"] == len(rows) == len(results) == 500
    mine = recomputed(results, golds)
    assert {name: figures[name] for name in mine} == pytest.approx(mine, abs=5.1e-5)
    assert 0.05 < mine["em"] < min(mine["f1"], mine["cover"])


@pytest.mark.parametrize(
    ("said", "gold", "scores"),
    [
        ("The Trieste!", "trieste", (1, 1, 1)),
        ("Lina Orr of Trieste", "Trieste", (0, 0.4, 1)),
        ("nothing", "no", (0, 0, 0)),
        ("A", "a", (1, 1, 1)),
        ("", "the", (0, 0, 0)),
        ("new york york", "New York", (0, 0.8, 1)),
    ],
)
def test_the_definitions_here_say_what_the_papers_say(said: str, gold: str, scores: tuple[float, ...]):
    assert (em(said, gold), f1(said, gold), cover(said, gold)) == pytest.approx(scores)
