"""What is particular about an arm: the oracle, protocols of its own, worlds of a kind."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.trace import Evidenced, Merged, Planned, Trace
from agent.trace.io import read_traces
from agent.world import load_world
from agent.world.difficulty import Difficulty
from lab.reproduce.behaviour import behaviour
from lab.reproduce.design import MIXES, ORACLE, SHIPPED, Arm, WorldKind
from lab.reproduce.evaluating import evaluate
from lab.reproduce.papers import trainings
from lab.reproduce.protocols import changed_protocol, protocol_name
from lab.reproduce.study import SHIPPED_RECIPE, read_study
from lab.reproduce.worlds import evaluation_world
from tests.lab.reproduce.small import small_study
from tests.train.sft.test_episodes import episodes, rollout
from train.evaluation.store import TRACES

pytestmark = pytest.mark.train


def hear(*said: object) -> None:
    """Of the progress, which is shown elsewhere."""


def traces(name: str) -> list[tuple[tuple[str, ...], Trace]]:
    return [(question.answers, rollout(question, made, name)) for question, made in episodes(name)[:12]]


def test_the_oracle_answers_through_the_protocols_own_searches(tmp_path: Path):
    study = small_study(tmp_path)
    arm = Arm(name="x", says="x", policy=ORACLE, protocol="multisearch", world="plain")
    world = evaluation_world(study, "plain", 1)
    answers = evaluate(arm, world=world, policy=tmp_path, out=tmp_path / "all", show=hear)
    assert set(answers) == {question.id for question in load_world(world).questions}
    assert sum(one["em"] for one in answers.values()) >= 0.8 * len(answers)
    assert any(one.get("three_queries") for one in answers.values())
    web = evaluate(arm.model_copy(update={"sources": ("arxiv",)}), world=world, policy=tmp_path,
                   out=tmp_path / "arxiv", show=hear)  # fmt: skip
    assert sum(one["em"] for one in web.values()) < sum(one["em"] for one in answers.values())


def test_sources_that_are_left_answer_in_the_place_of_those_that_a_policy_names(tmp_path: Path):
    study = small_study(tmp_path)
    world = evaluation_world(study, "flat", 1)
    arm = Arm(name="x", says="x", protocol="dag", world="flat")
    policy, found = study.exported(SHIPPED, 1), dict[str, float]()
    for sources in ((), ("web",)):
        out = tmp_path / f"out{len(sources)}"
        one = arm.model_copy(update={"sources": sources})
        answers = evaluate(one, world=world, policy=policy, out=out, show=hear)
        traces_of = list(read_traces(out / TRACES))
        assert all(any(step.kind == "planned" for step in trace.steps) for trace in traces_of), "no plan is rejected"
        assert not any(step.kind == "plan_rejected" for trace in traces_of for step in trace.steps)
        found[f"{len(sources)}"] = sum(one["gold_found"] or 0 for one in answers.values())
    assert found["1"] < found["0"]


def test_behaviours_are_read_off_a_rollout():
    for answers, trace in traces("multisearch"):
        did = behaviour(trace, answers)
        sent = [len(step.plan.nodes) for step in trace.steps if isinstance(step, Planned)]
        assert did["searched"] == bool(sent)
        assert did["queries"] == (sum(sent) / len(sent) if sent else None)
        assert did["three_queries"] == (sum(number > 2 for number in sent) / len(sent) if sent else None)
        merged = " ".join(step.text for step in trace.steps if isinstance(step, Merged))
        assert did["merge_gold"] == (float(any(one in merged for one in answers)) if sent else None)
    searched = [(answers, trace) for answers, trace in traces("evidence") if behaviour(trace, answers)["searched"]]
    assert searched
    for answers, trace in searched:
        written = any(isinstance(step, Evidenced) for step in trace.steps)
        assert written or behaviour(trace, answers)["evidence_gold"] == 0.0


def test_a_changed_protocol_is_a_file_and_the_studys_own_is_found_by_its_name(tmp_path: Path):
    study = small_study(tmp_path)
    assert study.protocol(trainings()["multisearch-gdpo"]) == "multisearch"
    assert Path(study.protocol(trainings()["multisearch-one"])).is_file()
    assert Path(protocol_name("evidence_without")).is_file()
    assert changed_protocol("kg", {}, label="x", folder=tmp_path) == "kg"


def test_the_world_of_a_seed_is_made_once_and_is_another_one_for_another_seed(tmp_path: Path):
    study = small_study(tmp_path)
    first, again, other = (evaluation_world(study, "known", seed) for seed in (1, 1, 2))
    assert first == again
    assert load_world(first).documents != load_world(other).documents
    assert {question.type for question in load_world(first).questions} >= {"known", "chain1"}


@pytest.mark.parametrize("kind", get_args(WorldKind))
def test_a_world_that_is_there_is_not_made_again(tmp_path: Path, kind: WorldKind):
    card = evaluation_world(study := small_study(tmp_path, questions=20), kind, 1) / "world.json"
    before = card.stat()
    assert evaluation_world(study, kind, 1) == card.parent
    assert (card.stat().st_ino, card.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    "changed",
    [{"seed": 8}, {"people": 41}, {"questions": 5}, {"difficulty": Difficulty(noise=0.5)}, {"list_people": 61}],
    ids=lambda changed: next(iter(changed)),
)
def test_the_world_of_another_recipe_is_made_again(tmp_path: Path, changed: dict[str, Any]):
    study = small_study(tmp_path)
    worlds = study.recipe.worlds.model_copy(update=changed)
    other = replace(study, recipe=study.recipe.model_copy(update={"worlds": worlds}))
    there = load_world(evaluation_world(study, "plain", 1))
    made = load_world(evaluation_world(other, "plain", 1))
    elsewhere = load_world(evaluation_world(replace(other, out=tmp_path / "elsewhere"), "plain", 1))
    assert (made.documents, made.questions) == (elsewhere.documents, elsewhere.questions)
    assert (made.questions == there.questions) == ("list_people" in changed)


def test_a_world_of_another_mix_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    study = small_study(tmp_path)
    evaluation_world(study, "plain", 1)
    monkeypatch.setitem(MIXES, "plain", {"choice": 1.0})
    assert {one.type for one in load_world(evaluation_world(study, "plain", 1)).questions} == {"choice"}


@pytest.mark.parametrize("kind", ["plain", "hard", "hops"])
def test_the_card_of_a_world_says_how_hard_it_was_made(tmp_path: Path, kind: WorldKind):
    study = small_study(tmp_path)
    card = json.loads((evaluation_world(study, kind, 1) / "world.json").read_text(encoding="utf-8"))
    assert card["difficulty"] == study.recipe.worlds.difficulty_of(kind).model_dump(mode="json")


def test_a_kind_of_world_may_be_harder_and_have_fewer_questions(tmp_path: Path):
    worlds = read_study(SHIPPED_RECIPE, tmp_path).recipe.worlds
    assert worlds.difficulty_of("hard").noise > worlds.difficulty_of("plain").noise == worlds.difficulty.noise
    assert worlds.questions_of("hops") < worlds.questions_of("plain") == worlds.questions
