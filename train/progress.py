"""What a training command shows: a bar over a run, and what comes next when it has ended. No run knows it."""

from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli.console import messages, output

if TYPE_CHECKING:
    from rich.progress import Progress


def bar_of(unit: str) -> "Progress":
    """A bar with a description, how much of it is done in this unit, and how long it took and will take."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=messages(),
    )


def tell_trained(hub: Path) -> None:
    """Say where the model is, and the next command."""
    output().print(f"trained: {hub}\nnext: cairn checkpoint export {hub} --out {hub.parent / 'ct2'}")
