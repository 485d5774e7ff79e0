"""What the training page says of the nine runs is what their figures say."""

import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
RUNS = {row["run"]: row for row in json.loads((DOCS / "bench" / "rl.json").read_text(encoding="utf-8"))["runs"]}


def short(number: float) -> str:
    return f"{number:.3f}".removeprefix("0")


@pytest.mark.parametrize("name", ["grpo", "gdpo", "dapo"])
def test_the_training_page_reports_the_study_as_it_is(name: str) -> None:
    whole, seeds = RUNS[f"{name}, all seeds"], [RUNS[f"{name}-{seed}"]["gain"] for seed in (1, 2, 3)]
    expected = (
        rf"{name.upper()} (?:gains )?{re.escape(short(whole['gain']))} (?:EM )?"
        rf"\((?:95 %: )?{re.escape(short(whole['low']))} to {re.escape(short(whole['high']))}; "
        rf"(?:seeds )?{re.escape(short(min(seeds)))} to {re.escape(short(max(seeds)))}\)"
    )
    assert re.search(expected, (DOCS / "training.md").read_text(encoding="utf-8")), expected


def test_the_best_of_them_and_the_start_are_reported() -> None:
    page = (DOCS / "training.md").read_text(encoding="utf-8")
    assert f"EM {short(RUNS['grpo-1']['before'])} on `dev-v1`" in page
    assert f"The best of them by dev have {short(max(row['after'] for row in RUNS.values()))}" in page


def test_every_run_gains_what_the_study_asks_for() -> None:
    assert all(row["gain"] >= 0.15 and row["low"] > 0 for row in RUNS.values())
