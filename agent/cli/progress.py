"""A progress bar for work in stages, on standard error: how much is done, how fast, and how long it will take."""

from time import perf_counter
from types import TracebackType
from typing import Final, Self

from rich import filesize
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from agent.cli.console import messages

_SECONDS_BETWEEN: Final = 0.05
"""Telling the bar costs more than reading a line."""


class _Amount(ProgressColumn):
    """Done, of all, and a second."""

    def render(self, task: Task) -> Text:
        unit = str(task.fields["unit"])
        text = _amount(task.completed, unit)
        if task.total is not None:
            text += f" of {_amount(task.total, unit)}"
        if task.finished_speed or task.speed:
            text += f", {_amount(task.finished_speed or task.speed or 0.0, unit)}/s"
        return Text(text)


def _amount(value: float, unit: str) -> str:
    return filesize.decimal(int(value)) if unit == "bytes" else f"{value:,.0f} {unit}".rstrip()


class Stages:
    """One bar for each stage, in the order in which they begin. Nothing is shown without a terminal."""

    def __init__(self, units: dict[str, str]) -> None:
        """Name what is counted in each stage: `bytes`, or any other noun."""
        columns = (TextColumn("{task.description:>9}"), BarColumn(), _Amount(), TimeRemainingColumn())
        shown = messages().is_terminal
        self._progress = Progress(*columns, console=messages(), transient=True, disable=not shown)
        self._units, self._tasks = units, dict[str, TaskID]()
        self._shown_at = 0.0

    def show(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage came."""
        now = perf_counter()
        if stage in self._tasks and done < total and now - self._shown_at < _SECONDS_BETWEEN:
            return
        self._shown_at = now
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total, unit=self._units[stage])
        self._progress.update(self._tasks[stage], completed=done, total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()
