"""`cairn train reader` and `cairn bench transfer`. Torch is imported only when one of them runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from agent.cli.console import messages, output
from agent.errors import SetupError
from lab.cli.bench import bench_app
from lab.report import print_report, write_report
from train.commands import train_app

if TYPE_CHECKING:
    from lab.reader import run as running
    from lab.reader.transfer import Transfer

CHECKPOINT: Final = Path(__file__).parents[1] / "reader" / "checkpoints" / "reader-tiny"
REPORT: Final = Path("docs/bench/transfer.md")
CODE: Final = (
    "agent/rstool",
    "agent/checks/claims.py",
    "agent/checkpoints",
    "agent/world",
    "train/reader",
)
"""What the figures depend on."""
WORLDS: Final = ("test-v1", "test-v2")


@train_app.command("reader")
def train_reader(
    recipe: Annotated[Path, typer.Option(help="What to train, as TOML: lab/recipes/reader.toml.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run, and of the reader.")],
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0 leaves the choice to torch.")] = 1,
) -> None:
    """Train a reader: a small model that answers questions from passages, and never searches.

    It learns from questions and passages of training worlds of the little
    world, never from evidence of an agent, and is there to measure what that
    evidence is worth to another model. It takes about a quarter of an hour on
    one core; it cannot be resumed.

    Example: cairn train reader --recipe lab/recipes/reader.toml --out runs/reader
    """
    import torch

    from lab.reader.recipe import read_recipe
    from lab.reader.run import ReaderRun

    if threads:
        torch.set_num_threads(threads)
    settings = read_recipe(recipe)
    if (out / "log.jsonl").exists():
        raise SetupError(f"{out} already has a run; choose another --out")
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=messages()) as bar:
        task = bar.add_task("words", total=1.0)

        def on_progress(progress: "running.Progress") -> None:
            held_out = "" if progress.dev_em is None else f", dev {progress.dev_em:.3f}"
            said = f"step {progress.step}: loss {progress.loss:.3f}{held_out}"
            bar.update(task, completed=progress.done, description=said)

        reader = ReaderRun(settings, out).run(on_progress)
    output().print(f"trained: {out} ({reader.parameters:,} parameters)\nnext: cairn bench transfer --reader {out}")


@bench_app.command("transfer")
def bench_transfer(
    world: Annotated[
        list[str] | None,
        typer.Option("--world", help="World of the questions; may be repeated.", show_default="test-v1, test-v2"),
    ] = None,
    reader: Annotated[
        Path | None, typer.Option("--reader", metavar="DIR", help="A trained reader; left out, the shipped one.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", metavar="DIR", help="Of the agent; left out, the newest one.")
    ] = None,
    protocol: Annotated[str, typer.Option(help="Of the agent.")] = "cairn",
    limit: Annotated[int | None, typer.Option(min=1, help="Answer only this many questions, the first ones.")] = None,
    write: Annotated[bool, typer.Option("--write", help=f"Write the tables to {REPORT}, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Let a reader of another architecture answer alone, from plain retrieval, and from the agent's evidence.

    The questions are of worlds that neither has seen; the reader has the same
    room in characters each time. The difference is paired by question.

    Example: cairn bench transfer --world test-v1 --limit 100
    """
    import torch

    from agent.settings import load_settings
    from lab.reader.report import report, table
    from lab.reader.transfer import measure
    from train.reader.reading import TrainedReader

    torch.set_num_threads(1)
    answering = TrainedReader.load(reader or CHECKPOINT)
    measured: list[Transfer] = []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=messages(), transient=True) as bar:
        for name in world or WORLDS:
            task = bar.add_task(name)
            settings = load_settings(world=name, checkpoint=checkpoint, protocol=protocol)

            def show(done: int, total: int, task: TaskID = task) -> None:
                bar.update(task, completed=done, total=total)

            measured.append(measure(settings, answering, limit=limit, show=show))
    if write:
        write_report(REPORT, report(measured, answering), code=CODE)
    worlds = {figures.world: figures.as_dict() for figures in measured}
    print_report([table(one) for one in measured], {"reader": answering.name, "worlds": worlds}, as_json=json)
