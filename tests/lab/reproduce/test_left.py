"""What is kept of an arm: a training that stopped itself, questions that failed, and a plan that says what was read."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from time import sleep

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

import torch
from safetensors.torch import load, save

import agent
from agent.sources.corpus.folder import locked
from lab.reproduce.evaluating import ANSWERS, evaluate, read_answers
from lab.reproduce.jobs import jobs_of
from lab.reproduce.papers import all_arms, directions_of, trainings
from lab.reproduce.training import WEIGHTS, keep_state, newest
from lab.reproduce.work import LOCKS, do
from lab.reproduce.worlds import evaluation_world
from tests.lab.reproduce.small import HUB, small_study
from train.ppo.run import save_state

pytestmark = pytest.mark.train


def weights_of(hub: Path) -> dict[str, torch.Tensor]:
    return load((hub / WEIGHTS).read_bytes())


def moved() -> dict[str, torch.Tensor]:
    """Weights that are not those of the start."""
    return {name: tensor + 1 for name, tensor in weights_of(HUB).items()}


def hear(*said: object) -> None:
    """Of the progress, which is shown elsewhere."""


@pytest.mark.parametrize("name", ["multisearch-gdpo", "evidence-ppo"])
def test_a_training_that_stopped_itself_leaves_its_last_state(tmp_path: Path, name: str) -> None:
    study = small_study(tmp_path)
    training = trainings()[name]
    folder, recipe = study.training_folder(name, 1), study.rl_recipe(training, 1)
    wanted = moved()
    if name == "evidence-ppo":
        tied = {"lm_head.weight": wanted["model.embed_tokens.weight"]}  # a module's state has both names
        save_state(folder, 3, {"policy": wanted | tied}, keep=1)
    else:
        state = folder / "states" / "checkpoint-3"
        state.mkdir(parents=True)
        (state / WEIGHTS).write_bytes(save(wanted))
    keep_state(study, recipe, newest(recipe, folder), folder / "hub")
    found = weights_of(folder / "hub")
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[key], wanted[key]) for key in wanted)
    assert (folder / "hub" / "tokenizer.json").read_bytes() == (HUB / "tokenizer.json").read_bytes()


def test_one_that_stopped_before_its_first_state_leaves_the_start(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    folder = study.training_folder("multisearch-gdpo", 1)
    folder.mkdir(parents=True)
    recipe = study.rl_recipe(trainings()["multisearch-gdpo"], 1)
    keep_state(study, recipe, newest(recipe, folder), folder / "hub")
    assert (folder / "hub" / WEIGHTS).read_bytes() == (HUB / WEIGHTS).read_bytes()


def test_a_job_waits_until_one_of_a_session_that_was_killed_has_noticed(tmp_path: Path) -> None:
    study = small_study(tmp_path, questions=2)
    job = next(one for one in jobs_of(study, directions_of("all")) if one.name == "evaluated/dag-oracle/1")
    with ThreadPoolExecutor() as threads:
        with locked(study.out / LOCKS / job.name):
            running = threads.submit(do, study, job)
            sleep(0.5)
            assert not running.done()
            assert not study.answers_folder("dag-oracle", 1).exists()
        assert (running.result() or {})["n"] == 2


@pytest.mark.slow
def test_questions_that_failed_are_tried_again(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    arm = all_arms()["top-3"]
    world, out = evaluation_world(study, arm.world, 1), study.answers_folder(arm.name, 1)
    policy = study.exported(arm.policy, 1)
    first = evaluate(arm, world=world, policy=policy, out=out, show=hear)
    kept = [json.loads(line) for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    kept[0] |= {"status": "failed"}
    (out / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
    (out / ANSWERS).unlink()
    assert evaluate(arm, world=world, policy=policy, out=out, show=hear) == first


def test_a_readers_answers_are_kept_in_each_condition(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    arm = all_arms()["handed-over"].model_copy(update={"policy": "shipped"})
    world, out = evaluation_world(study, arm.world, 1), study.answers_folder(arm.name, 1)
    found = evaluate(arm, world=world, policy=study.exported(arm.policy, 1), out=out, show=hear)
    assert read_answers(out) == found
    assert len(found) == study.recipe.worlds.questions
    kept = {"em_evidence", "em_top_5", "em_as_many_as_fit", "given_evidence", "given_top_5"}
    assert kept <= set(next(iter(found.values())))


@pytest.mark.parametrize("name", ["multisearch-gdpo", "evidence-ppo"])
def test_a_point_of_a_curve_is_the_newest_state_until_then(tmp_path: Path, name: str) -> None:
    recipe = small_study(tmp_path).rl_recipe(trainings()[name], 1)
    for step in (2, 4):
        if name == "evidence-ppo":
            save_state(tmp_path, step, {}, keep=2)
        else:
            (tmp_path / "states" / f"checkpoint-{step}").mkdir(parents=True)
    found = [newest(recipe, tmp_path, until=step) for step in (1, 2, 3, 4)]
    assert found[0] is None
    assert found[1] == found[2] != found[3] == newest(recipe, tmp_path)


def test_a_plan_has_the_content_of_files_and_not_their_place(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    hub = shutil.copytree(HUB, there / "start")
    first, second = small_study(here), small_study(there, hub=hub)
    directions = directions_of("all")
    plans = {job.name: job.plan for job in jobs_of(first, directions)}
    assert {job.name: job.plan for job in jobs_of(second, directions)} == plans
    source = str(Path(agent.__file__).parent.parent)
    assert not [name for name, plan in plans.items() if source in json.dumps(plan)], "the source may be moved, too"
    other = shutil.copytree(HUB, there / "other")
    (other / WEIGHTS).write_bytes(save(moved()))
    changed = {job.name: job.plan for job in jobs_of(replace(second, hub=other), directions)}
    same = {name for name in plans if changed[name] == plans[name]}
    free = {job.name for job in jobs_of(first, directions) if job.arm and job.arm.policy in ("shipped", "oracle")}
    assert same == free | {"lists/1"}
