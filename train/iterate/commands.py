"""`cairn train iterate`. Torch is imported only by the command itself."""

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.console import output
from train.common.interrupt import stopped_early
from train.common.options import OutOption, ResumeOption, StartOption, ThreadsOption
from train.common.progress import bar_of, print_trained


def iterate(
    recipe: Annotated[Path, typer.Option(help='Rounds, as TOML with kind = "iterate": see train/recipes/.')],
    out: OutOption,
    start: StartOption = None,
    resume: ResumeOption = False,
    threads: ThreadsOption = 0,
) -> None:
    """Train a policy on its own good rollouts, round after round (expert iteration).

    A round samples rollouts, keeps those that a check accepts, trains on them, and answers dev questions; the best
    round by dev is kept. --resume repeats nothing that is finished, also after a kill.

    Example: cairn train iterate --recipe train/recipes/tiny_iterate.toml --start runs/weak/hub --out runs/iterate
    """
    from train.iterate.recipe import read_iterate_recipe

    settings = read_iterate_recipe(recipe, start=start)
    import torch

    from train.iterate.record import REPORT, table_of
    from train.iterate.run import IterateRun

    if threads:
        torch.set_num_threads(threads)
    run = IterateRun(settings, out, threads=threads)
    with bar_of("") as bar:
        task = bar.add_task("", total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        finished = run.go(show, resume=resume)
    if not finished:
        raise stopped_early(out)
    output().print(table_of(run.records))
    output().print(f"written: {out / REPORT}")
    print_trained(out / "hub")


def register(app: typer.Typer) -> None:
    """Add `iterate` to the `train` group."""
    app.command("iterate")(iterate)
