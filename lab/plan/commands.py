"""`cairn train plan`. Torch is imported only where a recipe is rehearsed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.console import messages, output
from train.commands import train_app

if TYPE_CHECKING:
    from rich.table import Table

    from lab.plan.memory import GpuMemory
    from lab.plan.planning import Plan
    from lab.plan.rehearsal import Rehearsed

_GB = 1e9


@train_app.command("plan")
def plan(
    recipe: Annotated[Path, typer.Argument(help="A recipe at full scale: see train/recipes/papers/.")],
    scale: Annotated[
        Path | None, typer.Option(help="Machines and assumptions; left out, NAME.scale.toml beside NAME.toml.")
    ] = None,
    start: Annotated[str | None, typer.Option(help="Another model than the recipe's, by its name on the hub.")] = None,
    rehearse: Annotated[
        bool, typer.Option("--rehearse/--no-rehearse", help="Run the recipe at a tiny size on this CPU, too.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object and nothing else.")] = False,
) -> None:
    """Say what a recipe needs at full scale, and rehearse it at a tiny size on this CPU.

    Memory of each GPU and seconds of a step, line by line with their formulas; every assumption; the commands to run
    it; what is not there yet. Nothing is downloaded, and no GPU is needed. All figures are estimates.

    Example: cairn train plan train/recipes/papers/multisearch.toml
    """
    from lab.plan.planning import commands_of, plan_of, read_any
    from lab.plan.scale import read_scale, scale_of

    read = read_any(recipe, start=start)
    there = scale or scale_of(recipe)
    made = plan_of(read, *read_scale(there))
    typed = commands_of(made, recipe, there, start=start)
    accelerate = there.parent / made.scale.accelerate if made.trainer.sharded else None
    seen = _rehearsed(made, accelerate) if rehearse else None
    if as_json:
        output().print_json(data=_data(made, typed, seen))
        return
    _show(made, typed, seen)


def _rehearsed(made: "Plan", accelerate: Path | None) -> "Rehearsed":
    from transformers.utils import logging

    from lab.plan.rehearsal import rehearse

    logging.disable_progress_bar()  # the terminal has ours
    with messages().status("rehearsing the recipe at a tiny size"):
        return rehearse(made.recipe, accelerate=accelerate)


def _show(made: "Plan", typed: list[str], seen: "Rehearsed | None") -> None:
    said, recipe, scale = output(), made.recipe, made.scale
    server = f" and {scale.server.gpus} for vLLM" if made.gpus > made.trainer.gpus else ", vLLM beside it"
    said.print(
        f"{recipe.name}: {recipe.start}, {made.shape.parameters / 1e9:.2f} billion weights; {recipe.learning.name}, "
        f"{recipe.steps} steps of {recipe.rollout.prompts} x {recipe.rollout.group} rollouts; "
        f"{made.trainer.gpus} {scale.gpu} to train{server}"
    )
    said.print(_memory_table("a GPU that trains, with the longest rows", made.longest))
    mean = f"with rows of the mean length: {made.usual.bytes / _GB:.1f} GB; the host: {made.host / _GB:.0f} GB"
    said.print(f"a micro-batch: {made.load.rows} x {made.load.row_tokens} tokens at most; {mean}")
    said.print(_memory_table("a GPU of vLLM", made.server))
    said.print(f"rollouts of the mean length whose keys and values fit at once: {made.at_once}")
    said.print(_time_table(made))
    paper = scale.paper
    if paper is not None:
        hours = f", {paper.hours:g} h" if paper.hours else ", hours unknown"
        said.print(f"the paper: {paper.gpus} GPUs{hours}")
    said.print("\nassumed:")
    for name, value in _assumptions(made).items():
        said.print(f"  {name} = {value}")
    said.print("\nto run it:")
    for line in typed:
        said.print(f"  {line}", soft_wrap=True)
    for note in made.notes:
        said.print(f"note: {note}")
    if seen is not None:
        where = f"{seen.processes} processes that share the weights" if seen.processes > 1 else "one process"
        norm = seen.figures["trainer/grad_norm"]
        said.print(
            f"rehearsed: {seen.steps} steps in {where}, with a gradient of norm {norm:.2g}; judge and reader got "
            f"{seen.requests} requests"
        )


def _memory_table(title: str, memory: "GpuMemory") -> "Table":
    from rich.table import Table

    table = Table("what", "GB", "formula", title=title)
    table.columns[1].justify = "right"
    for line in memory.lines:
        table.add_row(line.what, f"{line.bytes / _GB:.1f}", line.formula)
    fits = "it fits" if memory.fits else "IT DOES NOT FIT"
    table.add_row("all", f"{memory.bytes / _GB:.1f}", f"of {memory.holds / _GB:.0f} GB: {fits}", style="bold")
    return table


def _time_table(made: "Plan") -> "Table":
    from rich.table import Table

    table = Table("what", "seconds", "formula", title="a step")
    table.columns[1].justify = "right"
    for span in made.spans:
        table.add_row(span.what, f"{span.seconds:.0f}", span.formula)
    every = f"{made.recipe.steps} steps: {made.hours:.0f} h, {made.hours * made.gpus:.0f} GPU hours"
    table.add_row("all", f"{made.step_seconds:.0f}", every, style="bold")
    return table


def _assumptions(made: "Plan") -> dict[str, Any]:
    parts = {"rollouts": made.scale.rollouts, "efficiency": made.scale.efficiency, "server": made.scale.server}
    return {f"{part}.{name}": value for part, kept in parts.items() for name, value in kept.model_dump().items()}


def _data(made: "Plan", typed: list[str], seen: "Rehearsed | None") -> dict[str, Any]:
    """The same as plain data; bytes and seconds."""

    def memory(of: "GpuMemory") -> dict[str, Any]:
        lines = {line.what: line.bytes for line in of.lines}
        return {"lines": lines, "bytes": of.bytes, "holds": of.holds, "fits": of.fits}

    return {
        "name": made.recipe.name,
        "start": made.recipe.start,
        "parameters": made.shape.parameters,
        "gpu": made.scale.gpu,
        "gpus": made.gpus,
        "trainer": memory(made.longest),
        "trainer_mean": memory(made.usual),
        "server": memory(made.server),
        "host": made.host,
        "rollouts_at_once": made.at_once,
        "step": {span.what: span.seconds for span in made.spans},
        "step_seconds": made.step_seconds,
        "hours": made.hours,
        "assumed": _assumptions(made),
        "commands": typed,
        "notes": list(made.notes),
        "rehearsed": None
        if seen is None
        else {
            "steps": seen.steps,
            "processes": seen.processes,
            "requests": seen.requests,
            "figures": seen.figures,
        },
    }
