"""What a run reports while it goes: monitors.jsonl, TensorBoard and a table; and the rules that stop it.

A step takes two calls: `saw` with its rollouts, before anything is learned from them, then `ended` with the trainer's
own figures. Each of them raises `Collapsed` where a rule is broken. One process of a run holds the monitors.
"""

import json
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from agent.errors import SetupError
from train.common.lines import add_lines, keep_lines
from train.safety.figures import Figures, Watched, figures_of, reasons_of
from train.safety.rules import DEFAULT_RULES, Rule, check

if TYPE_CHECKING:
    from rich.table import Table
    from torch.utils.tensorboard import SummaryWriter

LINES: Final = "monitors.jsonl"
EVENTS: Final = "tensorboard"
_KEPT: Final = 1000
"""Steps that are kept for the rules and the table."""
_BEFORE: Final = 10
"""Steps that the table compares with."""


class Monitors:
    """The figures of a run, step by step. Use it as a context, so that everything is written at its end."""

    def __init__(
        self, folder: Path, rules: Sequence[Rule] = DEFAULT_RULES, *, after: int = 0, tensorboard: bool = True
    ) -> None:
        """Begin, or go on.

        Args:
            folder: of the run; `monitors.jsonl` and `tensorboard/` are made in it.
            rules: what stops the run.
            after: the last step that the run has done; what the files say of later ones is taken back.
            tensorboard: whether its files are written, too.

        Raises:
            SetupError: the files of a run that goes on cannot be read.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / LINES
        self._rules = rules
        self._history: deque[tuple[int, Figures]] = deque(_kept(self._path, after), maxlen=_KEPT)
        self._seen: list[Watched] = []
        self._step = after
        self._figures: Figures = {}
        self._board = _board(folder / EVENTS, after) if tensorboard else None

    def __enter__(self) -> "Monitors":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what TensorBoard still holds; a step that did not end is left out of the lines."""
        if self._board:
            self._board.close()

    def saw(self, step: int, rollouts: Iterable[Watched]) -> Figures:
        """Take the rollouts of a step, before anything is learned from them. A further batch of the step is added.

        Returns:
            The figures of all rollouts of the step so far.

        Raises:
            Collapsed: a rule about them is broken; the step is written, as far as it came.
        """
        self._seen = [*(self._seen if step == self._step else ()), *rollouts]
        self._step = step
        self._figures = figures_of(self._seen)
        self._hold([*self._history, (step, self._figures)])
        return self._figures

    def ended(self, step: int, trainer: Mapping[str, float]) -> Figures:
        """Take the trainer's figures and write the step down. A step without rollouts of its own has these alone.

        Args:
            step: the number given with its rollouts.
            trainer: for example loss, entropy, kl, grad_norm, lr; they are written as `trainer/…`.

        Raises:
            Collapsed: a rule about the step is broken; it is written first.
        """
        seen, figures = (self._seen, self._figures) if step == self._step else ([], {})
        figures = {**figures, **{f"trainer/{name}": float(value) for name, value in trainer.items()}}
        self._step, self._figures = step, figures
        self._write(step, figures, seen)
        self._history.append((step, figures))
        own = [rule for rule in self._rules if any(rule.speaks_of(name) for name in figures if _by_trainer(name))]
        check(own, list(self._history))
        return figures

    def table(self) -> "Table":
        """The last step for a terminal: each figure, its mean over the steps before, its lowest and highest."""
        from rich.table import Table

        table = Table("figure", *(("now", f"mean of {_BEFORE} before", "lowest", "highest")), title=self._title())
        for column in table.columns[1:]:
            column.justify = "right"
        for name, value in self._figures.items():
            values = [figures[name] for _, figures in self._history if name in figures]
            before = values[-_BEFORE - 1 : -1]
            spread = [fmean(before) if before else math.nan, min(values, default=value), max(values, default=value)]
            table.add_row(name, *(_printed(number) for number in (value, *spread)))
        return table

    def _title(self) -> str:
        masked = ", ".join(f"{count}: {why}" for why, count in reasons_of(self._seen).items())
        return f"step {self._step}{f' (masked: {masked})' if masked else ''}"

    def _hold(self, history: Sequence[tuple[int, Figures]]) -> None:
        """Hold the rules against a step that has not ended; where it breaks one, it is the last, and written."""
        try:
            check(self._rules, history)
        except SetupError:
            self._write(*history[-1], self._seen)
            raise

    def _write(self, step: int, figures: Figures, seen: Sequence[Watched]) -> None:
        """One line, and one point of each curve.

        Raises:
            SetupError: the disk is full, or the folder cannot be written.
        """
        masked = reasons_of(seen)
        line: dict[str, Any] = {"step": step, **{name: _plain(value) for name, value in figures.items()}}
        add_lines(self._path, [json.dumps(line | ({"masked": masked} if masked else {}))])
        try:
            if self._board:
                for name, value in figures.items():
                    self._board.add_scalar(name if "/" in name else f"step/{name}", value, step)
                self._board.flush()
        except OSError as error:
            why = error.strerror or error
            folder = self._path.with_name(EVENTS)
            raise SetupError(f"{folder} cannot be written: {why}; what was saved before is whole") from error


def _by_trainer(name: str) -> bool:
    """What the rollouts' rules have not looked at yet."""
    return name.startswith("trainer/")


def _board(folder: Path, after: int) -> "SummaryWriter":
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=after + 1)


def _kept(path: Path, after: int) -> list[tuple[int, Figures]]:
    """The figures of the steps up to `after` in the file; the lines of later ones are removed from it.

    Raises:
        SetupError: it cannot be read.
    """
    try:
        rows: list[dict[str, Any]] = [json.loads(line) for line in keep_lines(path, after=after)]
    except ValueError as error:
        raise SetupError(f"{path} cannot be read ({error}): remove the file") from error
    return [(row.pop("step"), {name: value for name, value in row.items() if isinstance(value, float)}) for row in rows]


def _plain(value: float) -> float | str:
    """JSON has no nan."""
    return float(value) if math.isfinite(value) else str(value)


def _printed(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"
