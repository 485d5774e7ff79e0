"""`cairn train tiny`. Torch is imported only by the command itself."""

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.console import messages, output


def tiny(
    out: Annotated[Path, typer.Option("--out", help="Folder of everything: worlds, runs, results, the checkpoint.")],
    recipe: Annotated[
        Path | None, typer.Option(help="Another recipe than the shipped one: see train/recipes/tiny.toml.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with --out; stages that are done stay done.")] = False,
    processes: Annotated[
        int, typer.Option(min=0, help="Of the supervised part; 0: one a core, as many as the recipe lets share a step.")
    ] = 0,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads in all; 0: one a core, four at most.")] = 0,
) -> None:
    """From nothing to a served agent: worlds, SFT, RL, evaluation, export, and one question over HTTP.

    Each stage tells how long it took; report.json and report.md keep it. The
    better policy of before and after reinforcement learning, by a dev world,
    is exported and asked the test list once. Ctrl-C stops; --resume goes on.

    Example: cairn train tiny --out runs/tiny
    """
    from train.tiny.recipe import SHIPPED
    from train.tiny.report import serving, table
    from train.tiny.run import make

    ledger = make(out, recipe=recipe or SHIPPED, resume=resume, processes=processes, threads=threads)
    output().print(table(ledger))
    messages().print(f"kept in {ledger.out}: report.md, report.json", style="dim")
    output().print(f"serve it: {serving(ledger)}", markup=False)


def register(app: typer.Typer) -> None:
    """Add `tiny` to the `train` group."""
    app.command("tiny")(tiny)
