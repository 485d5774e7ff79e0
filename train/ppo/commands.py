"""`cairn train ppo`. Torch is imported only by the command itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train.common.interrupt import stopped_early
from train.common.options import OutOption, ResumeOption, StartOption, ThreadsOption
from train.common.progress import print_trained, step_progress

if TYPE_CHECKING:
    from train.ppo.run import PpoRun


def ppo(
    recipe: Annotated[Path, typer.Option(help='What to train, as TOML with kind = "ppo": see train/recipes/.')],
    out: OutOption,
    start: StartOption = None,
    resume: ResumeOption = False,
    threads: ThreadsOption = 0,
) -> None:
    """Train a policy with PPO and a critic, as a baseline for the group algorithms of `cairn train rl`.

    The rollouts and rewards are the same; only the learning differs. One process, one device.
    Ctrl-C stops after the current step and saves; --resume continues from the newest state, also after a kill.

    Example: cairn train ppo --recipe train/recipes/tiny_ppo.toml --start runs/weak/hub --out runs/ppo
    """
    from train.ppo.recipe import read_ppo_recipe

    settings = read_ppo_recipe(recipe, start=start)
    import torch
    from transformers.utils import logging

    from train.ppo.run import PpoRun

    logging.disable_progress_bar()  # the terminal has ours

    if threads:
        torch.set_num_threads(threads)
    run = PpoRun(settings, out, threads=threads)
    if not _watched(run, resume=resume):
        raise stopped_early(out)
    print_trained(out / "hub")


def _watched(run: "PpoRun", *, resume: bool) -> bool:
    """Run with a progress bar over steps."""
    with step_progress(run.recipe.steps, run.table) as show:

        def on_step(step: int, figures: Mapping[str, float]) -> None:
            reward, entropy = (figures.get(name, float("nan")) for name in ("reward/total", "trainer/entropy"))
            dev = f", dev EM {figures['trainer/dev_em']:.3f}" if "trainer/dev_em" in figures else ""
            show(step, f"reward {reward:.3f}, entropy {entropy:.3f}{dev}")

        return run.go(on_step, resume=resume)


def register(app: typer.Typer) -> None:
    """Add `ppo` to the `train` group."""
    app.command("ppo")(ppo)
