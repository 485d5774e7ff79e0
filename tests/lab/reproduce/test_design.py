"""The design as data: what is claimed names what is run, and every run is a recipe."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.errors import SetupError
from lab.reproduce.design import MIXES, Side
from lab.reproduce.evaluating import METRICS as KEPT
from lab.reproduce.jobs import jobs_of
from lab.reproduce.ledger import Ledger
from lab.reproduce.papers import PAPERS, all_arms, arms_of, directions_of, trainings
from lab.reproduce.study import SHIPPED_RECIPE, merged, read_study
from train.evaluation.measure import METRICS

pytestmark = pytest.mark.train


def test_all_five_papers_have_claims_and_at_least_fifteen_in_all():
    assert set(PAPERS) == {"multisearch", "dag", "evidence", "reflect", "kg"}
    assert all(paper.directions for paper in PAPERS.values())
    assert len(directions_of("all")) >= 15


def test_every_claim_has_its_figures_its_place_and_what_the_miniature_cannot_say():
    for one in directions_of("all"):
        assert one.claim.endswith(".")
        assert one.cannot.endswith(".")
        assert one.figures
        assert one.place
        assert one.name.startswith(f"{one.paper}.")


def test_names_are_unique_and_everything_that_is_run_serves_a_claim():
    directions = directions_of("all")
    assert len({one.name for one in directions}) == len(directions)
    listed = [one.name for paper in PAPERS.values() for one in (*paper.trainings, *paper.arms)]
    assert len(set(listed)) == len(listed)
    assert {one.name for one in arms_of(directions)} == set(listed)


def test_every_figure_that_a_claim_compares_is_kept():
    read = {"em_evidence", "em_top_5", "em_as_many_as_fit"}
    assert set(KEPT) <= set(METRICS)
    assert {side.metric for one in directions_of("all") for side in one.sides} <= {*KEPT, *read}


def test_both_sides_of_a_claim_get_the_same_worlds():
    there = all_arms()
    for one in directions_of("all"):
        assert len({there[side.arm].world for side in one.sides}) == 1, one.name


def test_every_training_is_a_recipe_with_its_own_protocol_and_the_shared_start(tmp_path: Path):
    study = read_study(SHIPPED_RECIPE, tmp_path)
    for training in trainings().values():
        recipe = study.rl_recipe(training, 2)
        assert recipe.protocols == (training.protocol,)
        assert (recipe.start, recipe.seed) == (str(study.start), 2)
        assert training.protocol in study.sft.protocols
        rollouts = recipe.rollout.prompts * recipe.rollout.group
        assert rollouts == study.base["rollout"]["prompts"] * study.base["rollout"]["group"]
        assert all(stage.made.model_dump() for stage in recipe.reward)


def test_the_whole_design_is_planned_within_six_hours_of_two_cores(tmp_path: Path):
    study = read_study(SHIPPED_RECIPE, tmp_path)
    jobs = jobs_of(study, directions_of("all"))
    assert len(study.seeds) >= 3
    assert sum(job.seconds for job in jobs) <= 2 * 6 * 3600


def test_a_job_comes_behind_what_it_needs(tmp_path: Path):
    jobs = jobs_of(read_study(SHIPPED_RECIPE, tmp_path), directions_of("all"))
    seen: set[str] = set()
    for job in jobs:
        assert set(job.needs) <= seen, job.name
        seen.add(job.name)
    assert len(seen) == len(jobs)


def test_shares_of_the_mixes_sum_to_one():
    assert all(sum(mix.values()) == pytest.approx(1) for mix in MIXES.values())


def test_tables_are_merged_and_lists_are_not():
    assert merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 3}, "d": [2]}) == {"a": {"b": 3, "c": 2}, "d": [2]}


def test_an_unknown_paper_or_claim_is_reported_with_those_that_there_are():
    with pytest.raises(SetupError, match="no paper 'x'; choose from: all, multisearch"):
        directions_of("x")
    with pytest.raises(SetupError, match=r"kg has no direction 'kg.x'; it has: kg.rewards"):
        directions_of("kg", ["kg.x"])


def test_a_folder_of_question_lists_must_hold_them(tmp_path: Path):
    with pytest.raises(SetupError, match=r"lacks pipeline/questions\.jsonl"):
        read_study(SHIPPED_RECIPE, tmp_path / "out", questions=tmp_path)


def test_a_start_that_is_no_checkpoint_is_refused(tmp_path: Path):
    with pytest.raises(SetupError, match="no checkpoint in the hub's form"):
        read_study(SHIPPED_RECIPE, tmp_path / "out", hub=tmp_path)


def test_a_job_that_another_plan_made_is_refused_and_an_interrupted_one_is_not_done(tmp_path: Path):
    ledger = Ledger(tmp_path)
    assert not ledger.is_done("a", {"steps": 1})
    ledger.begin("a", {"steps": 1})
    ledger.end("a", 2.0, None)
    assert not Ledger(tmp_path).is_done("a", {"steps": 1})
    ledger.begin("a", {"steps": 1})
    ledger.end("a", 3.0, {"em": 1.0})
    again = Ledger(tmp_path)
    assert again.is_done("a", {"steps": 1})
    assert again.seconds("a") == 5.0
    with pytest.raises(SetupError, match="made by another plan"):
        again.is_done("a", {"steps": 2})


def test_a_ledger_with_the_previous_names_is_read(tmp_path: Path):
    ledger = Ledger(tmp_path)
    ledger.begin("evaluated/dag-start/1", {"steps": 1})
    ledger.end("evaluated/dag-start/1", 3.0, {"em": 1.0})
    kept = ledger.path.read_text(encoding="utf-8")
    previous = kept.replace("evaluated/dag-start", "asked/dag-start").replace('"sessions"', '"sittings"')
    assert previous != kept
    ledger.path.write_text(previous, encoding="utf-8")
    assert Ledger(tmp_path).kept == ledger.kept
    assert Side.model_validate({"asked": "dag-start"}) == Side(arm="dag-start")


def test_a_damaged_ledger_is_reported(tmp_path: Path):
    (tmp_path / "ledger.json").write_text("{", encoding="utf-8")
    with pytest.raises(SetupError, match="cannot be read"):
        Ledger(tmp_path)
