import json
import random

import pytest

from tests.train.evaluation.runs import failed, result
from train.evaluation.catalogue import METRICS
from train.evaluation.report import BRIEF, PLAIN, markdown, rows, summarise, table, verdict


def test_the_figures_are_means_over_what_could_be_scored():
    figures = summarise(
        [
            result(1, searches=2, policy_tokens=100, seconds=1.0),
            result(2, "yes no", f1=2 / 3, cover=1.0, searches=4, policy_tokens=300, seconds=3.0),
            result(3, "", stopped="bad_format", searches=0, policy_tokens=0, seconds=0.0),
            result(4, "no", stopped="forced", budget="rounds", searches=0, policy_tokens=0, seconds=0.0),
            failed(5),
        ],
        {},
    )
    assert (figures["questions"], figures["n"], figures["infrastructure"], figures["engine"]) == (5, 4, 1, 1)
    assert (figures["em"], figures["em_strict"], figures["cover"]) == (0.25, 0.2, 0.5)
    assert figures["f1"] == pytest.approx((1 + 2 / 3) / 4, abs=1e-4)
    assert (figures["searches"], figures["policy_tokens"]) == (1.5, 100)
    assert (figures["answered"], figures["forced"], figures["bad_format"]) == (2, 1, 1)
    assert (figures["seconds_p50"], figures["seconds_p95"]) == (0.5, 2.7)
    assert figures["em_interval"][0] <= figures["em"] <= figures["em_interval"][1]


def test_failures_are_counted_by_kind_and_are_no_wrong_answers():
    figures = summarise([result(1), failed(2, "timeout"), failed(3, "timeout"), failed(4, "source")], {})
    assert (figures["em"], figures["n"], figures["failures"]) == (1.0, 1, {"source": 1, "timeout": 2})
    assert figures["verdicts"] == {"right": 1, "wrong": 0, "abstained": 0, "failed": 3}
    assert ("  no answer within the time", "2", "") in rows(figures)


def test_every_figure_of_a_question_is_averaged_where_it_applies():
    figures = summarise([result(1, evidence_support=1.0, mystery=3), result(2, evidence_support=None), result(3)], {})
    assert figures["metrics"]["evidence_support"] == {"mean": 1.0, "interval": [1.0, 1.0], "n": 1}
    assert figures["metrics"]["mystery"]["mean"] == 3
    assert ("Supported claims (n 1)", "1.000", "1.000 – 1.000") in rows(figures)
    assert "judged" not in figures["metrics"]


def test_what_no_question_has_is_none_and_not_zero():
    figures = summarise([result(1), result(2)], {})
    assert (figures["searches"], figures["policy_tokens"], figures["seconds_p50"]) == (None, None, None)
    assert not [row for row in rows(figures) if "seconds" in row[0]]


def test_a_verdict_knows_what_it_is_not():
    assert verdict(result(1)) == "right"
    assert verdict(result(1, "no")) == "wrong"
    assert verdict(result(1, "I do not know", abstained=True)) == "abstained"
    assert verdict(result(1, "I do not know", abstained=True, em=1.0)) == "right"  # there is no answer
    assert verdict(failed(1)) == "failed"


def test_groups_are_scored_on_their_own_and_in_their_order():
    figures = summarise([result(1), result(2, "no"), result(3, "no", type="choice", hops=10)], {})
    assert {name: (g["n"], g["em"]) for name, g in figures["by_type"].items()} == {"chain": (2, 0.5), "choice": (1, 0)}
    assert [(name, g["n"], g["em"]) for name, g in figures["by_hops"].items()] == [
        ("1", 1, 0),
        ("2", 1, 1),
        ("10", 1, 0),
    ]


def test_the_settings_say_under_which_normalisation_the_scores_are_reported():
    results = [result(1, "Yes!", em_none=0.0, em=1.0, f1_none=0.5, cover_none=0.0)]
    figures = summarise(results, {"normalisation": "none"})
    assert (figures["em"], figures["f1"], figures["normalisation"]) == (0.0, 0.5, "none")
    assert (figures["verdicts"]["wrong"], figures["by_type"]["chain"]["em"]) == (1, 0.0)
    assert figures["metrics"]["em"]["mean"] == 1.0


def test_gold_is_counted_over_the_questions_where_it_is_known():
    figures = summarise(
        [result(1, gold_found=0.5, all_gold=0.0), result(2, gold_found=1.0, all_gold=1.0), result(3)], {}
    )
    assert (figures["gold_n"], figures["gold_found"], figures["all_gold"]) == (2, 0.75, 0.5)
    assert "gold_found" not in summarise([result(3)], {})


def test_nothing_that_could_be_scored_is_no_crash():
    figures = summarise([failed(1)], {})
    assert (figures["n"], figures["em"], figures["infrastructure"]) == (0, 0.0, 1)
    assert summarise([], {})["em_strict"] == 0.0
    assert markdown(figures, "nothing").startswith("# nothing")


def test_the_order_in_which_questions_ended_changes_no_figure():
    results = [result(n, "yes" if n % 3 else "no", seconds=n / 7) for n in range(50)]
    shuffled = random.Random(1).sample(results, len(results))
    assert json.dumps(summarise(results, {})) == json.dumps(summarise(shuffled, {}))


def test_the_report_is_plain_json_and_readable_markdown():
    figures = summarise([result(1), result(2, "no")], {"protocol": "cairn 1"})
    assert json.loads(json.dumps(figures)) == figures
    text = markdown(figures, "questions.jsonl: cairn")
    assert text.startswith("# questions.jsonl: cairn\n\n- protocol: cairn 1\n")
    assert "| EM | 0.500 | 0.000 – 1.000 |" in text
    assert f"| {METRICS['em'].definition} |" in text
    assert ("questions scored", "2", "") in rows(figures)


def test_names_from_elsewhere_break_no_table():
    figures = summarise([result(1, type="a|b\n[bold]c")], {})
    assert "| EM, type a\\|b \\[bold\\]c |" in markdown(figures, "t")
    assert table(figures, "[red]t").row_count == len(rows(figures))


def test_the_tables_name_only_metrics_that_are_defined():
    assert {*BRIEF, *PLAIN} <= METRICS.keys()
