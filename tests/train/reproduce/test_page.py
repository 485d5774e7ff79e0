"""The page: it tells the design before anything ran, and the verdicts of what was asked."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from tests.train.reproduce.small import small_study
from train.reproduce.jobs import jobs_of
from train.reproduce.ledger import Ledger
from train.reproduce.papers import directions_of
from train.reproduce.report import rulings, write_report
from train.reproduce.study import Study

pytestmark = pytest.mark.train


def keep(study: Study, name: str, seed: int, em: list[float]) -> None:
    """As a job leaves it that was done by the study's plan."""
    job = next(one for one in jobs_of(study, directions_of("all")) if one.name == f"asked/{name}/{seed}")
    ledger = Ledger(study.out)
    ledger.begin(job.name, job.plan)
    ledger.end(job.name, 1.0, {})
    folder = study.asked_folder(name, seed)
    folder.mkdir(parents=True)
    rows = {str(n): {"type": "chain1", "em": value, "f1": value} for n, value in enumerate(em)}
    (folder / "answers.json").write_text(json.dumps(rows), encoding="utf-8")


def test_before_anything_ran_the_page_holds_the_rule_and_every_claim(tmp_path: Path):
    study = small_study(tmp_path)
    write_report(study, Ledger(study.out), tmp_path)
    page = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    for one in directions_of("all"):
        assert f"### {one.name}" in page
        assert one.claim in page
    assert "excludes 0 in the claim's direction" in page
    assert page.count("not finished") > len(directions_of("all"))
    assert not list((tmp_path / "reproduction").glob("*.svg"))


def test_what_was_asked_is_told_with_its_interval_its_verdict_and_a_plot(tmp_path: Path):
    study = small_study(tmp_path, seeds=(1, 2))
    for seed in study.seeds:
        keep(study, "graph-and-documents", seed, [1.0] * 30)
        keep(study, "documents-alone", seed, [0.0] * 15 + [1.0] * 15)
    write_report(study, Ledger(study.out), tmp_path)
    page = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `graph-and-documents` | > `documents-alone`"))
    assert "| 1.000 | 0.500 | +0.500" in row
    assert "| 60, 2 | **holds** |" in row
    plot = (tmp_path / "reproduction" / "kg.svg").read_text(encoding="utf-8")
    texts = list(ET.fromstring(plot).itertext())
    assert "kg.graph / documents-alone" in texts
    assert "undecided" not in texts
    assert texts[-2] == "holds", "the colours that occur are explained below the rows"
    told = json.loads((tmp_path / "reproduction" / "figures.json").read_text(encoding="utf-8"))
    verdicts = {one["name"]: one["verdict"] for one in told["directions"]}
    assert verdicts["kg.graph"] == "holds"
    assert verdicts["kg.rewards"] == "not run"


def test_what_another_plan_made_is_not_told(tmp_path: Path):
    study = small_study(tmp_path)
    for name, em in (("graph-and-documents", 1.0), ("documents-alone", 0.0)):
        keep(study, name, 1, [em] * 30)
    assert verdict_of(study, "kg.graph") == "holds"
    worlds = study.recipe.worlds.model_copy(update={"people": 41})
    other = replace(study, recipe=study.recipe.model_copy(update={"worlds": worlds}))
    assert verdict_of(other, "kg.graph") == "not run"


def verdict_of(study: Study, name: str) -> str:
    return next(one.verdict for one in rulings(study, Ledger(study.out)) if one.direction.name == name)
