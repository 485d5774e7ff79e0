"""What an expert iteration has done: a record of each part, kept in one file, and the report that is made of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from agent.errors import SetupError
from agent.files.foreign import WHOLE_BYTES, read_file
from train.common.saving import as_a_whole

if TYPE_CHECKING:
    from rich.table import Table

RECORDS: Final = "rounds.json"
REPORT: Final = "report.md"
_COLUMNS: Final = ("round", "rollouts", "kept", "not kept because", "tokens", "EM on dev", "seconds")

PartKind = Literal["start", "sft", "rl"]


class PartRecord(BaseModel):
    """One part of the run: the start, a round, or the reinforcement learning behind a round.

    What is None has not been done yet, or is not done in such a part.
    """

    model_config = ConfigDict(extra="forbid")

    round: int
    part: PartKind
    rollouts: int | None = None
    kept: int | None = None
    not_kept: dict[str, int] = {}
    """Reason → rollouts."""
    trained: bool = False
    tokens: int | None = None
    """That the supervised training saw."""
    dev_em: float | None = None
    dev_questions: int = 0
    """That could be scored."""
    evaluated: bool = False
    seconds: float = 0.0
    """Of what was finished; work that a kill took is not counted."""

    @property
    def name(self) -> str:
        """Of the part and of its folder."""
        return f"round-{self.round}" + ("-rl" if self.part == "rl" else "")

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the report."""
        named = {"start": "start", "sft": str(self.round), "rl": f"{self.round}, then RL"}[self.part]
        why = ", ".join(f"{count} {reason}" for reason, count in self.not_kept.items())
        em = "–" if self.dev_em is None else f"{self.dev_em:.3f}"
        counts = ["–" if value is None else f"{value:,}" for value in (self.rollouts, self.kept, self.tokens)]
        return (named, *counts[:2], why, counts[2], em, f"{self.seconds:,.0f}")


def best_of(records: Sequence[PartRecord]) -> PartRecord:
    """The part with the highest EM on dev; of equals the first."""
    return max(records, key=lambda record: -1.0 if record.dev_em is None else record.dev_em)


def read_records(out: Path) -> list[PartRecord]:
    """The parts that a run has begun; none where there is no run.

    Raises:
        SetupError: the file cannot be read.
    """
    path = out / RECORDS
    try:
        return _LIST.validate_json(read_file(path, most=WHOLE_BYTES)) if path.exists() else []
    except (OSError, ValidationError) as error:
        raise SetupError(f"{path} cannot be read ({error}): start again in another folder") from error


def write_records(out: Path, records: Sequence[PartRecord]) -> None:
    """Write them as a whole or not at all.

    Raises:
        SetupError: they cannot be written, because the disk is full or otherwise.
    """
    with as_a_whole(out / RECORDS) as made:
        made.write_bytes(_LIST.dump_json(list(records), indent=1) + b"\n")


def write_report(out: Path, records: Sequence[PartRecord], *, name: str) -> Path:
    """Write the table of all parts as Markdown; gives its path."""
    best = best_of(records)
    lines = [
        f"# {name}",
        "",
        f"Best by dev: {best.name}, EM {best.cells[5]} of {best.dev_questions} questions.",
        "",
        "| " + " | ".join(_COLUMNS) + " |",
        "|---|---:|---:|---|---:|---:|---:|",
        *("| " + " | ".join(record.cells) + " |" for record in records),
    ]
    with as_a_whole(out / REPORT) as made:
        made.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return out / REPORT


def table_of(records: Sequence[PartRecord]) -> "Table":
    """The same for a terminal."""
    from rich.table import Table

    table = Table(*_COLUMNS, title=f"best by dev: {best_of(records).name}")
    for place, column in enumerate(table.columns):
        column.justify = "left" if place in (0, 3) else "right"
    for record in records:
        table.add_row(*record.cells)
    return table


_LIST: Final = TypeAdapter(list[PartRecord])
