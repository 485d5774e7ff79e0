"""The design as data: what is claimed names what is run, and every run is a recipe."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.cli import run as cairn
from agent.errors import CorpusError, SetupError
from agent.world import load_world
from lab.reproduce.behaviour import BEHAVIOURS
from lab.reproduce.design import BASELINES, MIXES, ORACLE
from lab.reproduce.design_page import design_page, seeds_for
from lab.reproduce.evaluating import METRICS as KEPT
from lab.reproduce.jobs import REAL_SECONDS, jobs_of
from lab.reproduce.ledger import Ledger
from lab.reproduce.papers import PAPERS, all_arms, arms_of, directions_of, trainings
from lab.reproduce.protocols import protocol_of
from lab.reproduce.real import RECIPE, Group, RealRecipe, real_arms
from lab.reproduce.run import alone
from lab.reproduce.starts import start_arms
from lab.reproduce.study import SHIPPED_RECIPE, Study, merged, read_study
from lab.reproduce.worlds import evaluation_world
from train.common.recipe_files import read_model
from train.evaluation.measure import METRICS
from train.rewards.registry import settings_of

pytestmark = pytest.mark.train
PAGE = Path(__file__).parents[3] / "docs" / "reproduction_design.md"


def shipped(folder: Path) -> Study:
    return read_study(SHIPPED_RECIPE, folder)


def test_the_design_page_is_what_is_run(tmp_path: Path):
    said = "write it again: python docs/make_reproduction.py"
    assert PAGE.read_text(encoding="utf-8") == design_page(shipped(tmp_path)), said


def test_all_five_papers_have_claims_and_at_least_fifteen_in_all():
    assert set(PAPERS) == {"multisearch", "dag", "evidence", "reflect", "kg"}
    assert all(paper.directions for paper in PAPERS.values())
    assert len(directions_of("all")) >= 15


def test_every_claim_says_what_it_changes_and_checks_that_it_did():
    for one in directions_of("all"):
        assert one.claim.endswith(".")
        assert one.figures
        assert one.place
        assert one.departures
        assert one.name.startswith(f"{one.paper}.")
        assert {check.kind for check in one.checks} & {"differs", "more"}, one.name


def test_every_trained_claim_has_room_and_a_start_whose_behaviour_is_uncertain():
    there = all_arms()
    for one in directions_of("all"):
        if any(there[side.arm].trained for expected in one.expected for side in (expected.first,)):
            kinds = {check.kind for check in one.checks}
            assert "room" in kinds, one.name
            assert "uncertain" in kinds or one.name in ("dag.several-sources", "dag.pipeline", "evidence.handed-over")


def test_the_seeds_suffice_for_the_papers_effects_or_the_page_says_why_a_larger_one_is_expected(tmp_path: Path):
    study, there = shipped(tmp_path), all_arms()
    assert len(study.seeds) >= 8
    for one in directions_of("all"):
        needed = [
            seeds_for(expected, study.recipe.worlds.questions_of(there[expected.first.arm].world))
            for expected in one.expected
        ]
        suffice = all(number is not None and number <= len(study.seeds) for number in needed)
        assert suffice or one.larger_because, (one.name, needed)


def test_the_rule_names_the_claims_that_lack_one_of_its_checks(tmp_path: Path):
    (said,) = [line for line in design_page(shipped(tmp_path)).splitlines() if line.startswith("- **cannot be seen")]
    oracle, _, start = said.partition("not all have every one: ")[2].partition(" with the oracle")
    for kind, text in (("room", oracle), ("uncertain", start)):
        lacking = {one.name for one in directions_of("all") if kind not in {check.kind for check in one.checks}}
        assert lacking
        assert {one.name for one in directions_of("all") if f"`{one.name}`" in text} == lacking


def test_the_page_says_how_many_single_hops_rounding_leaves_in_worlds_of_several(tmp_path: Path):
    study = shipped(tmp_path)
    questions = load_world(evaluation_world(study, "hops", 1)).questions
    single = sum(one.type == "chain1" for one in questions)
    assert single > 0
    assert f"{single} of the {len(questions)} of `hops`" in design_page(study)


def test_a_margin_of_another_figure_than_the_papers_is_a_departure():
    (one,) = directions_of("all", ["evidence.grpo"])
    assert one.figures.startswith("mean F1")
    assert "the margin is half of an effect in F1, and EM is compared" in one.departures


def test_claims_that_cannot_be_tested_are_named_and_not_run():
    left = [one for paper in PAPERS.values() for one in paper.untested]
    assert not {one.name for one in left} & {one.name for one in directions_of("all")}
    assert all(one.why.endswith(".") and one.claim.endswith(".") for one in left)


def test_in_every_protocol_that_is_trained_start_untouched_policy_and_oracle_are_evaluated():
    arms = arms_of(directions_of("all"))
    for training in trainings().values():
        own = {arm.policy for arm in arms if (arm.protocol, arm.world) == (training.protocol, training.world)}
        assert {"start", "shipped", ORACLE} <= own, training.name
    assert {arm.name for arm in start_arms()} <= {arm.name for arm in arms}
    assert len(start_arms()) % len(BASELINES) == 0


def test_the_arms_of_kg_differ_in_the_weight_of_the_gain_alone(tmp_path: Path):
    study, there = shipped(tmp_path), trainings()
    every, outcome = (study.rl_recipe(there[name], 1).reward for name in ("kg-all-rewards", "kg-outcome"))
    (one,), (two,) = every, outcome
    assert (one.name, one.settings, one.weights) == (two.name, two.settings, {})
    assert two.weights == {"gain": 0.0}


def test_each_number_of_queries_has_a_policy_of_its_own_whose_protocol_allows_no_more(tmp_path: Path):
    study, there = shipped(tmp_path), trainings()
    for number, name in ((1, "multisearch-one"), (2, "multisearch-two"), (3, "multisearch-gdpo")):
        training = there[name]
        assert protocol_of(training.protocol, training.protocol_changes).max_queries == number
        (reward,) = study.rl_recipe(training, 1).reward
        settings = settings_of(reward.name, reward.settings).model_dump()
        assert settings["more_than"] == number - 1


def test_observations_are_as_long_as_in_the_papers():
    assert protocol_of("reflect", {}).budget_tokens == 4096
    kg = protocol_of("kg", {})
    assert (kg.passages, kg.graph_chars > 0) == (5, True), "triples are beside the documents"
    instructions = protocol_of("multisearch", {}).instructions
    for strategy in ("the same in other words", "broader", "a part of the question"):
        assert strategy in instructions
    assert "evidence" not in protocol_of("evidence_without", {}).tags


def test_names_are_unique_and_everything_that_is_run_serves_a_claim():
    directions = directions_of("all")
    assert len({one.name for one in directions}) == len(directions)
    listed = [one.name for paper in PAPERS.values() for one in (*paper.trainings, *paper.arms)]
    assert len(set(listed)) == len(listed)
    assert {one.name for one in arms_of(directions)} == set(listed)


def test_every_figure_that_a_claim_compares_is_kept():
    read = {"em_evidence", "em_top_5", "em_as_many_as_fit", "given_evidence", "given_top_5"}
    kept = {*KEPT, *BEHAVIOURS, "area"}
    assert set(KEPT) <= set(METRICS)
    metrics = {side.metric for one in directions_of("all") for side in one.sides}
    assert {metric.removeprefix("area_") for metric in metrics} <= kept | read


def test_all_arms_of_a_claim_get_the_same_worlds():
    there = all_arms()
    for one in directions_of("all"):
        assert len({there[side.arm].world for side in one.sides}) == 1, one.name


def test_every_training_is_a_recipe_with_its_own_protocol_and_the_shared_start(tmp_path: Path):
    study = shipped(tmp_path)
    spoken = {Path(name).stem for name in study.sft.protocols}
    for training in trainings().values():
        recipe = study.rl_recipe(training, 2)
        assert (recipe.start, recipe.seed) == (str(study.start), 2)
        assert training.protocol in spoken
        assert recipe.report.keep == study.recipe.points
        assert recipe.steps == recipe.report.save_every_steps * study.recipe.points
        assert all(stage.made.model_dump() for stage in recipe.reward)


def test_the_whole_plan_takes_at_most_ten_hours_of_two_cores(tmp_path: Path):
    jobs = jobs_of(shipped(tmp_path), directions_of("all"))
    recipe = read_model(RECIPE, RealRecipe)
    groups: list[Group] = [one.group for arm in real_arms() for one in recipe.sets if one.group == arm.group]
    real = sum(recipe.questions * REAL_SECONDS[group] for group in groups)
    assert sum(job.seconds for job in jobs) + real <= 2 * 10 * 3600


def test_a_job_comes_behind_what_it_needs(tmp_path: Path):
    jobs = jobs_of(shipped(tmp_path), directions_of("all"))
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
    with pytest.raises(SetupError, match=r"made by another plan \(a recipe, the start, --limit or the data changed\)"):
        again.is_done("a", {"steps": 2})


def test_a_damaged_ledger_is_reported(tmp_path: Path):
    (tmp_path / "ledger.json").write_text("{", encoding="utf-8")
    with pytest.raises(SetupError, match="cannot be read"):
        Ledger(tmp_path)


@pytest.mark.parametrize("paper", ["starts", "multisearch"])
@pytest.mark.parametrize("inside", ["", "study"])
def test_an_out_that_is_no_folder_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], paper: str, inside: str
):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    out = tmp_path / "file" / inside
    assert cairn(["reproduce", paper, "--out", str(out)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "cannot be used as a folder" in said
    assert "name another --out" in said
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_what_fails_while_a_study_runs_is_not_taken_for_another_study(tmp_path: Path):
    with pytest.raises(CorpusError, match="mine"), alone(shipped(tmp_path / "out")):
        raise CorpusError("mine")
    with alone(shipped(tmp_path / "out")), pytest.raises(SetupError, match="another study is writing to"):
        alone(shipped(tmp_path / "out")).__enter__()
