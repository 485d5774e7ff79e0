"""`cairn bench model` against real servers, small, and what it says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli import run
from agent.cores import cores
from lab.benchmarks.load.model.compare import Compared, ModelFigures, off
from lab.benchmarks.load.model.cost import Cost
from lab.benchmarks.load.model.fit import Fitted, StreamAlone
from lab.benchmarks.load.model.paced import PacedCost
from lab.benchmarks.load.model.report import page, table
from lab.benchmarks.load.model.runs import Run, RunStage, Turn
from lab.benchmarks.load.model.simulate import Machine, Predicted
from lab.benchmarks.load.streams import StreamLoad

ENGINE = Path(__file__).parents[4] / "fixtures" / "engine"
MEASURED = StreamLoad(64, 63.0, 1200, 0, 0, 19.0, 3400.0, 5.0, 21.0, 90.0, 300.0, 4.0, 1.8, 2.5, 6.0)
PREDICTED = Predicted(64, 1150, 62.0, 18.5, 3.1, 2.4, 6.6, 2.0, 0.3)
COMPARED = Compared("embedded", PREDICTED, MEASURED)


def figures(*compared: Compared) -> ModelFigures:
    cost = Cost(0.001, 1e-5, 4e-4, 1e-6, 0.25, 1.4)
    alone = StreamAlone(300, 59.0, 0.08, (Run((RunStage(0.002, (Turn(30, 50),)),), 0.001),), cost)
    return ModelFigures(
        60.0,
        Fitted(alone, MEASURED, 3000, Machine(cost, 4e-5, workers=3)),
        PacedCost((203, 104), 20, 0.1, 0.01, 3e-5, 8e-5),
        compared,
    )


@pytest.mark.long
def test_a_small_comparison_fits_predicts_and_measures(capsys: pytest.CaptureFixture[str]):
    sizes = ["--fit", "3", "--streams", "2", "--paced", "4", "--seconds", "3", "--thought", "8", "--answer", "4"]
    code = run(["bench", "model", *sizes, "--checkpoint", str(ENGINE), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == (0 if found["holds"] else 1)
    embedded, paced = found["compared"]
    assert (embedded["policy"], paced["policy"]) == ("embedded", "paced")
    assert embedded["measured"]["lost"] == paced["measured"]["lost"] == 0
    assert 0 < embedded["predicted"]["answer_s_p50"] <= embedded["predicted"]["answer_s_p95"]
    assert paced["predicted"]["answer_s_p50"] == pytest.approx(paced["measured"]["answer_s_p50"], rel=0.5)
    assert found["fitted"]["machine"]["cost"]["both"] >= 1
    assert found["fitted"]["machine"]["workers"] == cores()


@pytest.mark.parametrize(
    ("changed", "holds"),
    [({}, True), ({"answers_per_s": 15.0}, False), ({"answer_s_p95": 8.4}, False), ({"lost": 1}, False)],
)
def test_a_prediction_holds_if_both_figures_are_within_a_fifth_and_nothing_was_lost(
    changed: dict[str, float], holds: bool
):
    compared = replace(COMPARED, measured=replace(MEASURED, **changed))
    assert compared.holds is holds
    assert ("every prediction is within 20%" in page(figures(COMPARED, compared))) is holds


def test_the_table_says_by_how_much_a_prediction_is_off():
    made = table(figures(COMPARED))
    assert len(made.rows) == 1
    assert "| 64 | embedded | 18.50 | 19.00 | -3% | 6.60 s | 6.00 s | +10% | 2.40 s | 2.50 s |" in page(
        figures(COMPARED)
    )


def test_the_page_says_how_many_workers_the_engine_has():
    assert "the engine's 3 workers" in page(figures(COMPARED))


def test_the_page_says_how_fast_the_machine_was_before_each_load():
    again = [replace(COMPARED, both=both) for both in (1.52, 1.61)]
    assert "each slower by | 1.40; before each load 1.52, 1.61 |" in page(figures(*again))


def test_nothing_measured_is_infinitely_off():
    assert off(1.0, 0.0) == float("inf")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["--streams", "4,x"], "not a list of numbers"),
        (["--fit", "64"], "predict other loads"),
        (["--paced", "50,128"], "fitted with 128"),
    ],
)
def test_loads_that_cannot_be_predicted_are_refused(given: list[str], why: str, capsys: pytest.CaptureFixture[str]):
    assert run(["bench", "model", *given]) == 2
    assert why in " ".join(capsys.readouterr().err.replace("│", " ").split())
