"""The page: it tells the design before anything ran, and the verdicts of what was asked."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from tests.train.reproduce.small import small_study
from train.reproduce.ledger import Ledger
from train.reproduce.papers import directions_of
from train.reproduce.report import write_report
from train.reproduce.study import Study

pytestmark = pytest.mark.train


def keep(study: Study, name: str, seed: int, em: list[float]) -> None:
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
    assert "kg.graph / documents-alone" in "".join(ET.fromstring(plot).itertext())
    told = json.loads((tmp_path / "reproduction" / "figures.json").read_text(encoding="utf-8"))
    verdicts = {one["name"]: one["verdict"] for one in told["directions"]}
    assert verdicts["kg.graph"] == "holds"
    assert verdicts["kg.rewards"] == "not run"
