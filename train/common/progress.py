"""What a training command shows: a bar over a run, and what comes next when it has ended. No run knows it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli.console import messages, output

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table


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


@contextmanager
def step_progress(steps: int, table: Callable[[], "Table | None"]) -> Iterator[Callable[[int, str], None]]:
    """Show a run that goes step by step: a bar, and under it a table; where no terminal is, both once, at the end.

    Args:
        steps: of the whole run.
        table: of the last step; None where this process keeps none.

    Yields:
        A function that takes the number of each step, and how it went in a few words.
    """
    from rich.console import Group
    from rich.live import Live

    bar = bar_of("steps")
    task = bar.add_task("rollouts", total=steps)
    with Live(bar, console=messages()) as live:

        def on_step(step: int, said: str) -> None:
            bar.update(task, completed=step, description=said)
            figures = table()
            live.update(Group(bar, figures) if figures else bar)

        yield on_step


def print_trained(hub: Path) -> None:
    """Print where the model is, and the next command."""
    output().print(f"trained: {hub}\nnext: cairn checkpoint export {hub} --out {hub.parent / 'ct2'}")
