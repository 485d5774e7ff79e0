"""The line that says when the figures of a page were measured, and of which code. `docs/figures.py` reads it."""

import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from agent import __version__

_CHECKOUT = Path(__file__).parents[2]


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
