"""How far a stage is: a bar in a terminal, a line now and then where the output goes elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from agent.cli.console import messages
from train.tiny.ledger import Ledger

_SECONDS: Final = 30.0
"""Between two lines."""


class Watch:
    """Of one stage after the other; every word of progress also beats the ledger's clock."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._progress: Progress | None = None
        self._task = TaskID(0)
        self._title = ""
        self._said = 0.0

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show one stage, from its beginning to its end."""
        self._title, self._said = title, perf_counter()
        terminal = messages().is_terminal
        if not terminal:
            self.say(f"{title} …")
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=messages(), transient=True, disable=not terminal) as self._progress:
            self._task = self._progress.add_task(title, total=None, amount="")
            try:
                yield
            finally:
                self._progress = None

    def show(self, done: float, total: float, unit: str, said: str = "") -> None:
        """Tell how far the stage is, and what there is to see."""
        self._ledger.beat()
        amount = f"{done:,.0f} of {total:,.0f} {unit}"
        text = f"{self._title}: {said}" if said else self._title
        if self._progress is not None:
            self._progress.update(self._task, completed=done, total=total, description=text, amount=amount)
        if not messages().is_terminal and perf_counter() - self._said >= _SECONDS:
            self._said = perf_counter()
            self.say(f"{text}, {amount}")

    @staticmethod
    def say(sentence: str) -> None:
        """A line that stays."""
        messages().print(Text(sentence))
