"""Where commands write: results on standard output, everything else on standard error. Lines are never broken."""

import json
import sys
import unicodedata
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.text import Text


@cache
def output() -> Console:
    """Standard output, for results."""
    return Console(highlight=False, soft_wrap=True)


@cache
def messages() -> Console:
    """Standard error, for notices, progress and complaints."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def note(sentence: str) -> None:
    """Say something on standard error that is good to know."""
    messages().print(Text(printable(sentence), style="yellow"))


def complain(sentence: str) -> None:
    """Say on standard error why something was not done."""
    messages().print(Text.assemble(("cairn: ", "bold red"), printable(sentence)))


def print_json(value: object) -> None:
    """Print one JSON object on standard output, and nothing else."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def write_report(path: Path, text: str) -> None:
    """Keep the page of what was measured; where that cannot be, it is said, and nothing that was measured is lost."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        complain(f"{path} cannot be written: {error.strerror or error}; the figures stand below")
    else:
        note(f"written: {path}")


def printable(text: str) -> str:
    """Text from elsewhere without what a terminal would obey: control characters, and marks that turn the direction."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _OBEYED)


_OBEYED = {"Cc", "Cf", "Cs", "Co"}
