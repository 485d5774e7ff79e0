"""What is kept of an arm: a training that stopped itself, questions that failed, and a plan that says what was read."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from signal import SIGINT, raise_signal
from time import sleep

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

import torch
from safetensors.torch import load, save

import agent
from agent.errors import SetupError
from agent.sources.corpus.folder import locked
from lab.reproduce.evaluating import ANSWERS, evaluate, read_answers
from lab.reproduce.jobs import jobs_of
from lab.reproduce.papers import all_arms, directions_of, trainings
from lab.reproduce.study import Study
from lab.reproduce.training import WEIGHTS, keep_state, newest, state_at, train
from lab.reproduce.work import LOCKS, do
from lab.reproduce.worlds import evaluation_world
from tests.lab.reproduce.small import HUB, small_study
from train.checkpoints.export import export_checkpoint
from train.ppo.run import save_state
from train.rl.recipe import RlRecipe
from train.safety.manifest import hashes_of, kept_manifest
from train.safety.rules import Collapsed

pytestmark = pytest.mark.train


def weights_of(hub: Path) -> dict[str, torch.Tensor]:
    return load((hub / WEIGHTS).read_bytes())


def moved() -> dict[str, torch.Tensor]:
    """Weights that are not those of the start."""
    return {name: tensor + 1 for name, tensor in weights_of(HUB).items()}


def add_state(folder: Path, name: str, step: int) -> None:
    """An empty one, of a training of this name."""
    if name == "evidence-ppo":
        save_state(folder, step, {}, keep=9)
    else:
        (folder / "states" / f"checkpoint-{step}").mkdir(parents=True)


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
        add_state(tmp_path, name, step)
    found = [newest(recipe, tmp_path, until=step) for step in (1, 2, 3, 4)]
    assert found[0] is None
    assert found[1] == found[2] != found[3] == newest(recipe, tmp_path)


@pytest.mark.parametrize("name", ["multisearch-gdpo", "evidence-ppo"])
def test_a_step_that_a_training_passed_must_have_its_state_and_one_that_it_never_reached_need_not(
    tmp_path: Path, name: str
) -> None:
    recipe = small_study(tmp_path, steps=8, points=2).rl_recipe(trainings()[name], 1)
    assert state_at(recipe, tmp_path, 4, stopped=True) is None
    for step in (3, 6):
        add_state(tmp_path, name, step)
    assert state_at(recipe, tmp_path, 7, stopped=True) == newest(recipe, tmp_path), "it stopped in step 7"
    for stopped in (True, False):
        with pytest.raises(
            SetupError, match=r"has no state of step 4, .*: remove the folder, and run the same command"
        ):
            state_at(recipe, tmp_path, 4, stopped=stopped)
    with pytest.raises(SetupError, match="no state of step 7"):
        state_at(recipe, tmp_path, 7, stopped=False)
    add_state(tmp_path, name, 4)
    assert state_at(recipe, tmp_path, 4, stopped=False) == newest(recipe, tmp_path, until=5)


@pytest.mark.slow
def test_an_interrupt_in_the_second_half_of_a_training_leaves_its_halfway_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = trainings()["multisearch-gdpo"]
    study, steps, kept = small_study(tmp_path, steps=6, points=2), count(1), list[Path | None]()

    def seen(study: Study, recipe: RlRecipe, state: Path | None, hub: Path) -> None:
        kept.append(state)
        keep_state(study, recipe, state, hub)

    monkeypatch.setattr("lab.reproduce.training.beat", lambda: raise_signal(SIGINT) if next(steps) == 4 else None)
    monkeypatch.setattr("lab.reproduce.training.keep_state", seen)
    assert train(study, training, 1) is None
    figures = train(study, training, 1) or {}
    assert figures["steps"] == next(steps) - 1 == 6
    assert [path.name for path in kept if path] == ["checkpoint-3"]


def test_what_a_killed_session_exported_stays_as_it_is_and_so_does_why_a_training_stopped(tmp_path: Path) -> None:
    study, training = small_study(tmp_path, steps=2, points=2), trainings()["multisearch-gdpo"]
    folder = study.training_folder(training.name, 1)
    recipe = study.rl_recipe(training, 1)
    with pytest.raises(Collapsed), kept_manifest(folder, recipe=recipe, seeds={}):
        raise Collapsed("the policy writes noise")
    shutil.copytree(HUB, folder / "hub")
    (folder / "hub" / WEIGHTS).write_bytes(save(moved()))
    halfway = study.exported(training.name, 1, point=1)
    protocols = list(recipe.protocols)
    export_checkpoint(folder / "hub", halfway, "int8", name=training.name, protocols=protocols)
    before = hashes_of(halfway)
    assert train(study, training, 1) == {"stopped": "the policy writes noise", "steps": 0.0}
    assert hashes_of(halfway) == before
    assert (study.exported(training.name, 1) / "cairn.json").exists()


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
