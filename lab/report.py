"""Pages of figures, with a line that says when, at which commit and of which code; `docs/figures.py` reads it."""

import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from agent import __version__
from agent.cli.console import complain, note

_CHECKOUT = Path(__file__).parents[1]


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
        complain(f"{path} cannot be written: {error.strerror or error}; the figures stand below")
    else:
        note(f"written: {path}")


def dated(page: str, code: Sequence[str]) -> str:
    """The page with that line behind its heading.

    Args:
        page: Markdown that begins with a heading.
        code: paths from the repository's root on which the figures depend.
    """
    heading, _, rest = page.partition("\n")
    return f"{heading}\n\n*Measured {date.today().isoformat()} at {_commit()}; code: {' '.join(code)}*\n{rest}"


def _commit() -> str:
    """Of the code that runs, with a `+` where it was changed since; the version where it is no checkout."""
    commit = _git("rev-parse", "--short", "HEAD")
    return commit + ("+" if _git("status", "--porcelain") else "") if commit else f"version {__version__}"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=_CHECKOUT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
