import json

import pytest

from train.evaluation.questions import Question
from train.evaluation.report import markdown, rows, summarise
from train.evaluation.run import Result, score


def result(number: int, prediction: str = "yes", **facts: object) -> Result:
    kind = facts.pop("type", "chain")
    question = Question(id=str(number), question="Who?", answers=("yes",), type=str(kind), hops=1 + number % 2)
    return score(question, prediction).model_copy(update={"stopped": "answered", **facts})


def test_the_figures_are_means_over_what_could_be_scored():
    figures = summarise(
        [
            result(1, searches=2, policy_tokens=100, seconds=1.0),
            result(2, "yes no", searches=4, policy_tokens=300, seconds=3.0, type="choice"),
            result(3, "", stopped="bad_format"),
            result(4, "no", stopped="forced", budget="rounds"),
            result(5, infrastructure=True, stopped="engine", searches=99),
        ],
        {},
    )
    assert (figures["asked"], figures["n"], figures["infrastructure"], figures["engine"]) == (5, 4, 1, 1)
    assert (figures["em"], figures["em_strict"], figures["cover"]) == (0.25, 0.2, 0.5)
    assert figures["f1"] == pytest.approx((1 + 2 / 3) / 4, abs=1e-4)
    assert (figures["searches"], figures["policy_tokens"]) == (1.5, 100)
    assert (figures["answered"], figures["forced"], figures["bad_format"]) == (2, 1, 1)
    assert figures["seconds_p50"] == 0.5
    assert figures["em_interval"][0] <= figures["em"] <= figures["em_interval"][1]


def test_groups_are_scored_on_their_own():
    figures = summarise([result(1), result(2, "no"), result(3, "no", type="choice")], {})
    assert {name: (g["n"], g["em"]) for name, g in figures["by_type"].items()} == {"chain": (2, 0.5), "choice": (1, 0)}
    assert {name: (g["n"], g["em"]) for name, g in figures["by_hops"].items()} == {"1": (1, 0), "2": (2, 0.5)}


def test_gold_is_counted_over_the_questions_where_it_is_known():
    figures = summarise([result(1, gold=2, gold_found=1), result(2, gold=1, gold_found=1), result(3)], {})
    assert (figures["gold_n"], figures["gold_found"], figures["all_gold"]) == (2, 0.75, 0.5)
    assert "gold_found" not in summarise([result(3)], {})


def test_nothing_that_could_be_scored_is_no_crash():
    figures = summarise([result(1, infrastructure=True)], {})
    assert (figures["n"], figures["em"], figures["infrastructure"]) == (0, 0.0, 1)


def test_the_report_is_plain_json_and_readable_markdown():
    figures = summarise([result(1), result(2, "no")], {"protocol": "cairn 1"})
    assert json.loads(json.dumps(figures)) == figures
    text = markdown(figures, "questions.jsonl: cairn")
    assert text.startswith("# questions.jsonl: cairn\n\n- protocol: cairn 1\n")
    assert "| EM | 0.500 | 0.000 – 1.000 |" in text
    assert ("questions scored", "2", "") in rows(figures)
