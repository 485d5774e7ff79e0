"""What a benchmark leaves: rows of figures as a table or as Markdown, one object, and a page in the documentation.

A page has a line that says when it was measured, at which commit and of which code; `docs/figures.py` reads it.
"""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from rich.table import Table

from agent import __version__
from agent.cli.console import complain, note, output, print_json

_CHECKOUT = Path(__file__).parents[1]


@dataclass(frozen=True)
class ReportTable:
    """Rows of figures under a head; a head of empty cells is left out in a terminal."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    caption: str = ""

    def rich(self) -> Table:
        """For a terminal."""
        table = Table(*self.head, title=self.title or None, caption=self.caption or None, show_header=any(self.head))
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """For a page; title and caption are left to its text."""
        head, *rows = ("|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (self.head, *self.rows))
        return "\n".join([head, "|" + "---|" * len(self.head), *rows])


def print_report(tables: Iterable[ReportTable], figures: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what was measured: as one object, or as tables."""
    if as_json:
        print_json(figures)
        return
    for table in tables:
        output().print(table.rich())


def write_report(path: Path, text: str, *, code: Sequence[str] = ()) -> None:
    """Keep the page of what was measured; where that cannot be, it is said, and nothing that was measured is lost.

    Args:
        path: of the page.
        text: of it.
        code: what was measured, as paths from the repository's root; the page says when, and at which commit.
    """
    text = dated(text, code) if code else text
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        complain(f"{path} cannot be written: {error.strerror or error}; the figures are below")
    else:
        note(f"written: {path}")


def dated(page: str, code: Sequence[str]) -> str:
    """The page with that line behind its heading.

    Args:
        page: Markdown that begins with a heading.
        code: paths from the repository's root on which the figures depend.
    """
    heading, _, rest = page.partition("\n")
    return f"{heading}\n\n*Measured {date.today().isoformat()} at {commit()}; code: {' '.join(code)}*\n{rest}"


@cache
def commit() -> str:
    """Of the code that runs, with a `+` where it was changed since; the version where it is no checkout."""
    commit = _git("rev-parse", "--short", "HEAD")
    return commit + ("+" if _git("status", "--porcelain") else "") if commit else f"version {__version__}"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=_CHECKOUT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
