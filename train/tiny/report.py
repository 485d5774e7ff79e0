"""What the whole way gave, as a table in the terminal and as report.md."""

import shlex
from typing import TYPE_CHECKING

from agent.errors import SetupError
from agent.sanitize.text import in_markdown
from train.tiny.ledger import Ledger
from train.tiny.served import command
from train.tiny.stages import STAGES
from train.tiny.worlds import FOLDER

if TYPE_CHECKING:
    from rich.table import Table

Row = tuple[str, str, str]


def rows(ledger: Ledger) -> list[Row]:
    """(stage, what came out, seconds), and their sum."""
    stages = ledger.told.stages
    listed = [
        (stage.title, _note(stages[stage.name].said, stages[stage.name].sittings), f"{stages[stage.name].seconds:,.1f}")
        for stage in STAGES
        if stage.name in stages and stages[stage.name].done
    ]
    minutes = f"{ledger.told.seconds / 60:.1f} minutes"
    return [*listed, ("all", minutes, f"{ledger.told.seconds:,.1f}")]


def table(ledger: Ledger) -> "Table":
    from rich.table import Table
    from rich.text import Text

    drawn = Table("stage", "what came out", title=Text(f"{ledger.told.name}: from nothing to a served agent"))
    drawn.add_column("seconds", justify="right")
    listed = rows(ledger)
    for row in listed[:-1]:
        drawn.add_row(*map(Text, row))
    drawn.add_section()
    drawn.add_row(*map(Text, listed[-1]))
    return drawn


def serving(ledger: Ledger) -> str:
    """How a person serves what was made."""
    return shlex.join(["cairn", *command(ledger.out, ledger.out / FOLDER / "served")])


def write_report(ledger: Ledger) -> None:
    """Write report.md; report.json is the ledger's own.

    Raises:
        SetupError: the folder cannot be written.
    """
    told, box = ledger.told, ledger.told.machine
    memory = f", {box.memory_gib:.0f} GiB" if box.memory_gib else ""
    where = f"{box.system} {box.architecture}, {box.cores} cores{memory}, {', '.join(box.gpus) or 'no GPU'}"
    lines = [f"| {' | '.join(in_markdown(text) for text in row)} |" for row in rows(ledger)]
    text = "\n".join(
        [
            f"# {in_markdown(told.name)}: from nothing to a served agent",
            "",
            f"Cairn {told.version}; {where}; {told.processes} processes in the supervised part. Figures of each stage "
            "stand in report.json.",
            "",
            "| stage | what came out | seconds |",
            "|---|---|---:|",
            *lines,
            "",
            f"Serve it: `{serving(ledger)}`",
            "",
        ]
    )
    try:
        (ledger.out / "report.md").write_text(text, encoding="utf-8")
    except OSError as error:
        raise SetupError(f"the report cannot be written to {ledger.out}: {error.strerror or error}") from error


def _note(said: str, sittings: int) -> str:
    return f"{said}; in {sittings} sittings" if sittings > 1 else said
