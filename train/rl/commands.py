"""`cairn train rl`. Torch and TRL are imported only by the command itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train.common.interrupt import stopped_early
from train.common.options import OutOption, ResumeOption, StartOption, ThreadsOption
from train.common.progress import print_trained, step_progress

if TYPE_CHECKING:
    from train.rl.run import RlRun


def rl(
    recipe: Annotated[Path, typer.Option(help="What to train, as TOML: see train/recipes/ and docs/training.md.")],
    out: OutOption,
    start: StartOption = None,
    resume: ResumeOption = False,
    threads: ThreadsOption = 0,
) -> None:
    """Train a policy with reinforcement learning: GRPO, GDPO or DAPO over rollouts of the agent itself.

    Ctrl-C stops after the current step and saves; --resume goes on from the newest state, also after a kill.

    Example: cairn train rl --recipe train/recipes/tiny_grpo.toml --start runs/weak/hub --out runs/grpo
    """
    from train.rl.recipe import read_rl_recipe

    settings = read_rl_recipe(recipe, start=start)
    import torch

    from train.common.process_group import leave
    from train.rl.run import RlRun

    if threads:
        torch.set_num_threads(threads)
    run = RlRun(settings, out, threads=threads)
    if not _watched(run, resume=resume):
        raise stopped_early(out)
    print_trained(out / "hub")
    leave()


def _watched(run: "RlRun", *, resume: bool) -> bool:
    """Run with a progress bar over steps."""
    with step_progress(run.recipe.steps, run.table) as show:
        dev = ""

        def on_step(step: int, figures: Mapping[str, float]) -> None:
            nonlocal dev
            if "trainer/dev_em" in figures:
                dev = f", dev EM {figures['trainer/dev_em']:.3f}"
            reward, searches = figures.get("reward/total", float("nan")), figures.get("search/mean", 0)
            show(step, f"reward {reward:.3f}, searches {searches:.2f}{dev}")

        return run.go(on_step, resume=resume)


def register(app: typer.Typer) -> None:
    """Add `rl` to the `train` group."""
    app.command("rl")(rl)
