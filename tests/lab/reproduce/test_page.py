"""The page: it shows what is to come before anything ran, and the verdicts, checks and curves of what was evaluated."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from lab.reproduce.findings import Findings, findings_of
from lab.reproduce.jobs import all_jobs, left_seconds, minutes_by_arm
from lab.reproduce.ledger import Ledger
from lab.reproduce.papers import directions_of
from lab.reproduce.report import write_report
from lab.reproduce.starts import start_rows
from lab.reproduce.study import Study
from tests.lab.reproduce.small import keep, small_study

pytestmark = pytest.mark.train

TRAINED: Final = "trained/kg-outcome/1"


def found(study: Study) -> Findings:
    return findings_of(study, Ledger(study.out))


def page_of(study: Study, folder: Path) -> str:
    write_report(study, found(study), folder)
    return (folder / "reproduction.md").read_text(encoding="utf-8")


def keep_graph(study: Study, *, oracle: float = 1.0) -> None:
    """The answers of `kg.graph`: half of the questions are answered without the graph, and all with it."""
    for seed in study.seeds:
        keep(study, "graph-and-documents", seed, {"em": [1.0] * 30, "answer_shown": [1.0] * 30})
        keep(
            study,
            "documents-alone",
            seed,
            {"em": [0.0] * (14 + seed) + [1.0] * (16 - seed), "answer_shown": [0.5] * 30},
        )
        keep(study, "kg-oracle", seed, {"em": [oracle] * 30})


def test_before_anything_ran_the_page_holds_every_claim(tmp_path: Path):
    study = small_study(tmp_path)
    page = page_of(study, tmp_path)
    for one in directions_of("all"):
        assert f"### {one.name}" in page
        assert one.claim in page
    assert page.count("not finished") > len(directions_of("all"))
    assert not list((tmp_path / "reproduction").glob("*.svg"))


def test_what_was_evaluated_is_shown_with_its_interval_its_checks_its_verdict_and_a_plot(tmp_path: Path):
    study = small_study(tmp_path, seeds=3)
    keep_graph(study)
    page = page_of(study, tmp_path)
    row = next(line for line in page.splitlines() if line.startswith("| `graph-and-documents` > `documents-alone`"))
    assert "| 1.000 | 0.467 | +0.533 (+0.451 to +0.616)" in row
    assert "| 90, 3 | **holds** |" in row
    assert (
        "| answers are shown more often (`graph-and-documents` > `documents-alone`: answer among the passages) | +0.500"
        in page
    )
    assert (
        "[kg.graph](#kggraph) | Graph and documents are better than documents alone at inference. | **holds** | the same"
        in page
    )
    plot = (tmp_path / "reproduction" / "kg.svg").read_text(encoding="utf-8")
    texts = list(ET.fromstring(plot).itertext())
    assert "kg.graph / documents-alone" in texts
    assert "undecided" not in texts
    assert texts[-2] == "holds", "the colours that occur are explained below the rows"
    kept = json.loads((tmp_path / "reproduction" / "figures.json").read_text(encoding="utf-8"))
    verdicts = {one["name"]: one for one in kept["directions"]}
    assert verdicts["kg.graph"]["verdict"] == "holds"
    assert [check["passed"] for check in verdicts["kg.graph"]["checked"]] == [True, True]
    assert verdicts["kg.rewards"]["verdict"] == "not run"
    assert "The checks of 1 passed." in page


def test_a_claim_without_room_to_the_oracle_is_shown_as_one_that_cannot_be_seen(tmp_path: Path):
    study = small_study(tmp_path, seeds=3)
    keep_graph(study, oracle=0.5)
    page = page_of(study, tmp_path)
    assert "Here: cannot be seen here." in page
    assert "**failed** |" in page
    assert found(study).rulings["kg.graph"].verdict == "cannot be seen here"


def test_the_course_of_a_training_is_in_the_table_of_arms_and_in_a_plot(tmp_path: Path):
    study = small_study(tmp_path, seeds=2, steps=2, points=2)
    for seed in study.seeds:
        figures = {"em": [1.0] * 4, "em_1": [0.0, 0.0, 1.0, 1.0], "em_2": [1.0] * 4, "area": [0.5, 0.5, 1.0, 1.0]}
        keep(study, "dag-trained", seed, figures)
    page = page_of(study, tmp_path)
    row = next(line for line in page.splitlines() if line.startswith("| `dag-trained` | GRPO"))
    assert "| 0.500 → 1.000 |" in row
    plot = (tmp_path / "reproduction" / "dag-curves.svg").read_text(encoding="utf-8")
    assert [text for text in ET.fromstring(plot).itertext() if text.strip()][-1] == "dag-trained"


def test_the_starts_behaviours_are_shown_with_their_probability_and_what_they_pay(tmp_path: Path):
    study = small_study(tmp_path, seeds=2)
    for seed in study.seeds:
        keep(study, "multisearch-start-sampled", seed,
             {"em": [1.0, 1.0, 0.0, 1.0], "three_queries": [1.0, 1.0, 0.0, 0.0], "merge_gold": [1.0] * 4})  # fmt: skip
    rows = {row.says: row for row in start_rows(found(study).found)}
    assert (rows["rounds of three queries"].em_with, rows["rounds of three queries"].em_without) == (1.0, 0.5)
    assert (rows["rounds of three queries"].uncertain, rows["merges with the answer"].uncertain) == (True, False)
    assert "The checks of 0 passed." in page_of(study, tmp_path), "of claims that are run to their end"
    page = page_of(study, tmp_path)
    assert "| `multisearch-start-sampled` | merges with the answer | 1.000 (1.000 to 1.000) | 0.750 | – |" in page


def test_what_another_plan_made_is_not_shown(tmp_path: Path):
    study = small_study(tmp_path, seeds=2)
    keep_graph(study)
    assert found(study).rulings["kg.graph"].verdict == "holds"
    worlds = study.recipe.worlds.model_copy(update={"people": 41})
    other = replace(study, recipe=study.recipe.model_copy(update={"worlds": worlds}))
    assert found(other).rulings["kg.graph"].verdict == "not run"


def keep_training(study: Study, plan: Any, reward: tuple[float, float], *, code: str) -> None:
    """What is written down of a training that is done by a plan; it took ten minutes."""
    ledger = Ledger(study.out)
    ledger.begin(TRAINED, plan)
    ledger.kept.jobs[TRAINED].code = code
    ledger.end(TRAINED, 600.0, {"reward_first": reward[0], "reward_last": reward[1]})


def test_rewards_minutes_and_commits_are_of_this_plan_alone(tmp_path: Path):
    study = small_study(tmp_path)
    keep_training(study, {"another": "plan"}, (0.1, 0.9), code="abc123")
    page = page_of(study, tmp_path)
    assert "0.10 → 0.90" not in page
    assert ", 0 core minutes so far." in page
    assert found(study).made_at("trained/") == ""
    plan = next(job.plan for job in all_jobs(study) if job.name == TRAINED)
    (study.out / "ledger.json").unlink()
    keep_training(study, plan, (0.1, 0.9), code="abc123")
    page = page_of(study, tmp_path)
    assert "0.10 → 0.90" in page
    assert ", 10 core minutes so far." in page
    assert "abc123 (1 jobs)" in found(study).made_at("trained/")


def test_minutes_are_a_lower_bound_where_a_session_may_have_been_killed(tmp_path: Path):
    study = small_study(tmp_path)
    plan = next(job.plan for job in all_jobs(study) if job.name == TRAINED)
    Ledger(study.out).begin(TRAINED, plan)
    keep_training(study, plan, (0.1, 0.9), code="abc123")
    assert ", at least 10 core minutes so far." in page_of(study, tmp_path)


def test_what_is_left_is_estimated_by_jobs_that_one_session_did(tmp_path: Path):
    study = small_study(tmp_path, seeds=4)
    jobs = [job for job in all_jobs(study) if job.name.rpartition("/")[0] == TRAINED.rpartition("/")[0]]
    ledger = Ledger(study.out)
    for job, seconds, sessions in zip(jobs, (300.0, 500.0, 8.0), (1, 1, 2), strict=False):
        for _ in range(sessions):
            ledger.begin(job.name, job.plan)
        ledger.end(job.name, seconds, {})
    assert left_seconds(jobs, ledger) == 400
    assert list(minutes_by_arm(jobs, ledger)) == [("trained/kg-outcome", 4, 3, pytest.approx(808 / 60), 400 / 60)]
    assert left_seconds(jobs[2:], ledger) == jobs[3].seconds, "of none is it known"
