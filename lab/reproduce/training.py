"""What the arms of a study are trained by: the shared start, and reinforcement learning. Torch and TRL are needed."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import torch
from safetensors.torch import save_file
from transformers.utils import logging

from agent.errors import SetupError
from agent.policies.checkpoint import MANIFEST
from lab.reproduce.design import Training
from lab.reproduce.ledger import Figures
from lab.reproduce.study import EXPORTED, Study
from lab.reproduce.waiting import beat
from train.checkpoints.export import export_checkpoint
from train.common.process_group import ProcessGroup, run_in_processes
from train.common.recipe import SftRecipe
from train.common.saving import as_a_whole
from train.models.pretrained import unshared
from train.ppo import run
from train.ppo.recipe import PpoRecipe
from train.ppo.run import PpoRun
from train.rl.finish import figures_in
from train.rl.recipe import RlRecipe
from train.rl.run import RlRun
from train.rl.states import newest_state, updates_of
from train.safety.manifest import read_manifest
from train.safety.rules import Collapsed
from train.sft.run import SftProgress, SftRun

WEIGHTS: Final = "model.safetensors"
CURVES: Final = ("reward/total", "search/mean", "length/mean")


def start(study: Study, processes: int) -> Figures | None:
    folder = study.out / "start"
    learned: dict[str, float] | None = {}
    if study.hub is None:
        if not (folder / "state.pt").exists():
            shutil.rmtree(folder, ignore_errors=True)
        shared = min(processes, study.sft.optimizer.batches_per_step)
        learned = run_in_processes(shared, _learn_start, study.sft, folder)
    if learned is None:
        return None
    export_checkpoint(study.start, folder / EXPORTED, "int8", name=study.sft.name)
    return {name: round(value, 5) for name, value in learned.items()}


def _learn_start(process_group: ProcessGroup, recipe: SftRecipe, out: Path) -> dict[str, float] | None:
    """Train the start to its end, in each of its processes; None where it was interrupted (its state is saved then)."""
    logging.disable_progress_bar()  # the terminal belongs to the command
    last: dict[str, float] = {}

    def observe(progress: SftProgress) -> None:
        shares = {
            "policy_loss": progress.policy_loss,
            "dev_tokens_right": progress.dev_tokens_right,
            "dev_trajectories_right": progress.dev_trajectories_right,
        }
        last.update({name: round(value, 5) for name, value in shares.items() if value is not None})
        if process_group.is_main_process:
            beat()

    run = SftRun(recipe, out, process_group)
    if (out / "state.pt").exists():
        run.resume()
    if not run.done and not run.run(observe):
        return None
    if process_group.is_main_process:
        run.save_hub()
    place = run.place
    counted = {"tokens": float(place.tokens), "steps": float(place.step), "train_seconds": round(place.seconds, 1)}
    return counted | {"tokens_per_second": round(place.tokens / max(place.seconds, 1e-9), 1)} | last


def train(study: Study, training: Training, seed: int) -> Figures | None:
    """Train to the end, and export the policy at every point of its curve; None where it was interrupted.

    Raises:
        SetupError: something cannot be used, or the state of a point is gone.
    """
    recipe, folder = study.rl_recipe(training, seed), study.training_folder(training.name, seed)
    if not (folder / "hub").is_dir():
        try:
            if not _learn(recipe, folder):
                return None
        except Collapsed:
            keep_state(study, recipe, newest(recipe, folder), folder / "hub")
    why = _stopped_itself(folder)
    protocols = list(recipe.protocols)
    for point in range(1, study.recipe.points):
        there = study.exported(training.name, seed, point=point)
        if (there / MANIFEST).exists():  # by a session that was killed later: its states may be gone
            continue
        state = state_at(recipe, folder, point * recipe.steps // study.recipe.points, stopped=bool(why))
        with TemporaryDirectory(dir=folder) as made:
            keep_state(study, recipe, state, Path(made) / "hub")
            export_checkpoint(Path(made) / "hub", there, "int8", name=training.name, protocols=protocols)
    export_checkpoint(folder / "hub", folder / EXPORTED, "int8", name=training.name, protocols=protocols)
    shutil.rmtree(folder / "states", ignore_errors=True)
    return ({"stopped": why} if why else {}) | _course(folder)


def _stopped_itself(folder: Path) -> str:
    """Why a training that has ended stopped itself; empty where it came to its last step."""
    session = read_manifest(folder).sessions[-1]
    return session.why if session.state == "stopped" else ""


def state_at(recipe: RlRecipe, folder: Path, step: int, *, stopped: bool) -> Path | None:
    """The state of a training that has ended, at a step; of one that stopped itself before, its newest one.

    Args:
        recipe: of the training.
        folder: its folder.
        step: at which a state is saved.
        stopped: whether it stopped itself.

    Returns:
        None where it stopped before its first state.

    Raises:
        SetupError: it passed the step, and the state is gone.
    """
    state, last = newest(recipe, folder, until=step), newest(recipe, folder)
    reached = _step_of(recipe, last) if stopped else recipe.steps
    if reached >= step > _step_of(recipe, state):
        raise SetupError(
            f"{folder} has no state of step {step}, which is a point of its curve: remove the folder, and run the same "
            "command again to train once more"
        )
    return state


def _step_of(recipe: RlRecipe, state: Path | None) -> int:
    """Steps that were done when a state was saved; 0 of none."""
    if state is None:
        return 0
    return run.step_of(state) if isinstance(recipe, PpoRecipe) else updates_of(state) // recipe.updates_per_step


def newest(recipe: RlRecipe, folder: Path, *, until: int | None = None) -> Path | None:
    """The newest state of a training, at a step or before; None where there is none."""
    is_ppo = isinstance(recipe, PpoRecipe)
    if until is None:
        return run.newest_state(folder) if is_ppo else newest_state(folder)
    there = (folder / "states").glob("step-*.pt" if is_ppo else "checkpoint-*")
    found = {step: path for path in there if (step := _step_of(recipe, path)) <= until}
    return found[max(found)] if found else None


def keep_state(study: Study, recipe: RlRecipe, state: Path | None, hub: Path) -> None:
    """Put the policy of a state into a folder in the hub's form, or that of the start where there is no state."""
    with as_a_whole(hub) as made:
        shutil.copytree(study.start, made)
        if state is None:
            return
        if isinstance(recipe, PpoRecipe):
            weights = unshared(run.load_state(state, device=torch.device("cpu"))["policy"].items())
            save_file({name: tensor.contiguous() for name, tensor in weights.items()}, made / WEIGHTS)
        else:
            shutil.copyfile(state / WEIGHTS, made / WEIGHTS)


def _learn(recipe: RlRecipe, folder: Path) -> bool:
    """Train to the end, from where an earlier session stopped; False where it was interrupted.

    All states are kept: every Ctrl-C saves one more, and none may take the place of one that the curve needs.
    """
    recipe = recipe.model_copy(update={"report": recipe.report.model_copy(update={"keep": recipe.steps})})
    is_ppo = isinstance(recipe, PpoRecipe)
    state = newest(recipe, folder)
    if state is None:
        shutil.rmtree(folder, ignore_errors=True)
    run = PpoRun(recipe, folder, threads=1) if is_ppo else RlRun(recipe, folder, threads=1)
    return run.go(_stepped, resume=state is not None)


def _stepped(step: int, figures: Mapping[str, float]) -> None:
    beat()


def _course(folder: Path) -> Figures:
    """How a few figures went, from the first step to the last."""
    steps = figures_in(folder)
    course: Figures = {"steps": float(len(steps))}
    for name in CURVES:
        values = [float(step[name]) for step in steps if isinstance(step.get(name), float | int)]
        if values:
            short = name.partition("/")[0]
            course |= {f"{short}_first": round(values[0], 4), f"{short}_last": round(values[-1], 4)}
    return course
