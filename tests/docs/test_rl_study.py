"""The study's recipes can be run, and what the training page says of the nine runs is what their figures say."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from docs.make_rl_study import STUDIES, page_of_arms, recipe_text, rows_of_arms
from train.rl.recipe import RlRecipe

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


@pytest.mark.parametrize(("study", "arm"), [(study, arm) for study, arms in STUDIES.items() for arm in arms])
def test_every_recipe_of_the_studies_is_a_recipe_with_its_own_credit(study: str, arm: str) -> None:
    made = STUDIES[study][arm]
    recipe = RlRecipe.model_validate(tomllib.loads(recipe_text(made, seed=7, steps=30)))
    assert (recipe.seed, recipe.steps, recipe.rollout.prompts, recipe.rollout.group) == (7, 30, 6, 6)
    assert recipe.optimizer.minibatches == made.minibatches
    credit = recipe.learning.credit
    assert (list(credit.model_dump(exclude_defaults=True)) if credit else []) == ([arm] if made.credit else [])


def test_the_arms_of_credit_are_compared_seed_by_seed() -> None:
    arms = STUDIES["credit"]
    ems = {"grpo": (0.5, 1.0), "first_hit": (1.0, 1.0)}
    answers = {
        f"{arm}-{seed}": {"a": ems.get(arm, (0.5, 0.5))[seed], "b": ems.get(arm, (0.5, 0.5))[seed]}
        for arm in arms
        for seed in (0, 1)
    }
    curves = {name: [(0, 0.0), (4, found["a"] or 0.0)] for name, found in answers.items()}
    rows = rows_of_arms(arms, {**answers, "start": {"a": 0.0, "b": 1.0}}, curves, seeds=(0, 1))
    assert [row["run"] for row in rows] == list(arms)
    assert (rows[0]["start"], rows[0]["end"], rows[1]["end"], rows[1]["curve"]) == (0.5, 0.75, 1.0, 1.0)
    value, low, high = rows[1]["end_difference"]
    assert value == 0.25
    assert (low, high) == pytest.approx((0.25 - 0.25 * 12.7062, 0.25 + 0.25 * 12.7062), abs=1e-3)
    page = page_of_arms(rows, arms, steps=30, seeds=8)
    assert "| first_hit | `first_hit = 0.5` | 1.000 | +0.250 (" in page
    assert "8 seeds detect a difference of 0.029" in page
