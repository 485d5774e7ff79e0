"""The page: it shows the design before anything ran, and the verdicts of what was evaluated."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.errors import SetupError
from lab.reproduce.findings import Findings, findings_of, read_findings
from lab.reproduce.jobs import jobs_of
from lab.reproduce.ledger import Ledger
from lab.reproduce.papers import directions_of
from lab.reproduce.report import write_report
from lab.reproduce.study import Study
from tests.lab.reproduce.small import small_study

pytestmark = pytest.mark.train


def found(study: Study, earlier: Findings | None = None) -> Findings:
    return findings_of(study, Ledger(study.out), earlier)


def page_of(study: Study, folder: Path, earlier: Findings | None = None) -> str:
    write_report(study, found(study, earlier), folder)
    return (folder / "reproduction.md").read_text(encoding="utf-8")


def keep(study: Study, name: str, seed: int, em: list[float]) -> None:
    """As a job leaves it that was done by the study's plan."""
    job = next(one for one in jobs_of(study, directions_of("all")) if one.name == f"evaluated/{name}/{seed}")
    ledger = Ledger(study.out)
    ledger.begin(job.name, job.plan)
    ledger.end(job.name, 1.0, {})
    folder = study.answers_folder(name, seed)
    folder.mkdir(parents=True)
    rows = {str(n): {"type": "chain1", "em": value, "f1": value} for n, value in enumerate(em)}
    (folder / "answers.json").write_text(json.dumps(rows), encoding="utf-8")


def test_before_anything_ran_the_page_holds_the_rule_and_every_claim(tmp_path: Path):
    study = small_study(tmp_path)
    page = page_of(study, tmp_path)
    for one in directions_of("all"):
        assert f"### {one.name}" in page
        assert one.claim in page
    assert "excludes 0 in the claim's direction" in page
    assert page.count("not finished") > len(directions_of("all"))
    assert not list((tmp_path / "reproduction").glob("*.svg"))


def test_what_was_evaluated_is_shown_with_its_interval_its_verdict_and_a_plot(tmp_path: Path):
    study = small_study(tmp_path, seeds=(1, 2))
    for seed in study.seeds:
        keep(study, "graph-and-documents", seed, [1.0] * 30)
        keep(study, "documents-alone", seed, [0.0] * 15 + [1.0] * 15)
    page = page_of(study, tmp_path)
    row = next(line for line in page.splitlines() if line.startswith("| `graph-and-documents` | > `documents-alone`"))
    assert "| 1.000 | 0.500 | +0.500" in row
    assert "| 60, 2 | **holds** |" in row
    plot = (tmp_path / "reproduction" / "kg.svg").read_text(encoding="utf-8")
    texts = list(ET.fromstring(plot).itertext())
    assert "kg.graph / documents-alone" in texts
    assert "undecided" not in texts
    assert texts[-2] == "holds", "the colours that occur are explained below the rows"
    kept = json.loads((tmp_path / "reproduction" / "figures.json").read_text(encoding="utf-8"))
    verdicts = {one["name"]: one["verdict"] for one in kept["directions"]}
    assert verdicts["kg.graph"] == "holds"
    assert verdicts["kg.rewards"] == "not run"


def test_what_another_plan_made_is_not_shown(tmp_path: Path):
    study = small_study(tmp_path)
    for name, em in (("graph-and-documents", 1.0), ("documents-alone", 0.0)):
        keep(study, name, 1, [em] * 30)
    assert verdict_of(study, "kg.graph") == "holds"
    worlds = study.recipe.worlds.model_copy(update={"people": 41})
    other = replace(study, recipe=study.recipe.model_copy(update={"worlds": worlds}))
    assert verdict_of(other, "kg.graph") == "not run"


def verdict_of(study: Study, name: str) -> str:
    return found(study).rulings[name].verdict


def begun(folder: Path) -> Study:
    """A study of which one claim is judged, on its page in `folder`; another has one seed of two."""
    study = small_study(folder, seeds=(1, 2))
    for seed in study.seeds:
        keep(study, "graph-and-documents", seed, [1.0] * 30)
        keep(study, "documents-alone", seed, [0.0] * 15 + [1.0] * 15)
    keep(study, "short-context", 1, [0.0] * 30)
    page_of(study, folder)
    return study


def test_another_folder_goes_on_from_a_page_and_shows_what_was_judged_there(tmp_path: Path):
    first = begun(tmp_path)
    second = replace(first, out=tmp_path / "another")
    earlier = read_findings(second, tmp_path)
    assert earlier.rulings.keys() == {"kg.graph"}, "a claim that lacks a seed is tested again"
    keep(second, "short-context", 1, [1.0] * 30)
    page = page_of(second, tmp_path / "second", earlier)
    assert "1 of them were judged by an earlier run of the same plan" in page
    own = {line for line in page_of(first, tmp_path).splitlines() if "documents-alone" in line}
    assert len(own) == 2
    assert own <= set(page.splitlines()), "the row of the inequality and that of the arm are those of the first run"
    assert "| `short-context` | a quarter of the context, one passage each | kg, plain | – | 1 | 1.000 |" in page
    plot = (tmp_path / "second" / "reproduction" / "kg.svg").read_text(encoding="utf-8")
    assert plot.count("kg.graph / documents-alone") == 1
    third = read_findings(replace(first, out=tmp_path / "third"), tmp_path / "second")
    assert third.rulings == earlier.rulings


def test_what_this_folder_judged_itself_stands_before_an_earlier_ruling(tmp_path: Path):
    first = begun(tmp_path)
    second = replace(first, out=tmp_path / "another")
    for seed in second.seeds:
        keep(second, "graph-and-documents", seed, [1.0] * 30)
        keep(second, "documents-alone", seed, [1.0] * 30)
    both = found(second, read_findings(second, tmp_path))
    assert both.rulings["kg.graph"].judged[0].difference.value == 0.0
    assert not both.earlier


def test_a_page_of_another_plan_is_refused(tmp_path: Path):
    study = begun(tmp_path)
    worlds = study.recipe.worlds.model_copy(update={"people": 41})
    other = replace(study, recipe=study.recipe.model_copy(update={"worlds": worlds}))
    with pytest.raises(SetupError, match="no claim there was judged by this plan"):
        read_findings(other, tmp_path)
    for seeds in ((1, 2, 3), (1,)):
        with pytest.raises(SetupError, match="no claim there was judged by this plan"):
            read_findings(replace(study, seeds=seeds), tmp_path)


def test_a_claim_that_says_something_else_by_now_is_tested_again(tmp_path: Path):
    study = begun(tmp_path)
    path = tmp_path / "reproduction" / "figures.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"margin": 0.05', '"margin": 0.2'), encoding="utf-8")
    with pytest.raises(SetupError, match="no claim there"):
        read_findings(study, tmp_path)


def test_figures_that_are_missing_or_damaged_are_reported(tmp_path: Path):
    study = small_study(tmp_path)
    with pytest.raises(SetupError, match="name the folder of an earlier page"):
        read_findings(study, tmp_path)
    (tmp_path / "reproduction").mkdir()
    (tmp_path / "reproduction" / "figures.json").write_text('{"name": "x"}', encoding="utf-8")
    with pytest.raises(SetupError, match="holds no figures of `cairn reproduce`"):
        read_findings(study, tmp_path)
