"""The saved states of an RL run: their names, the newest one, and how one becomes whole."""

import os
import shutil
from pathlib import Path
from typing import Final

from agent.files.foreign import open_file

STATES: Final = "states"
PREFIX: Final = "checkpoint-"


def newest_state(out: Path) -> Path | None:
    """The newest state of a run that can be gone on from."""
    found = [path for path in (out / STATES).glob(f"{PREFIX}*") if path.name.removeprefix(PREFIX).isdigit()]
    return max(found, key=number_of, default=None)


def updates_of(state: Path) -> int:
    """Updates that were done when a state was saved."""
    return number_of(state)


def number_of(path: Path) -> int:
    return int(path.name.removeprefix(PREFIX))


def settle(made: Path, states: Path, *, keep: int) -> None:
    """Give a whole state its name, and remove the oldest ones."""
    for path in sorted(made.rglob("*")):
        if path.is_file():
            with open_file(path) as file:
                os.fsync(file.fileno())
    there = states / made.name
    shutil.rmtree(there, ignore_errors=True)
    made.rename(there)
    shutil.rmtree(made.parent, ignore_errors=True)
    older = sorted((path for path in states.glob(f"{PREFIX}*")), key=number_of)
    for path in older[:-keep]:
        shutil.rmtree(path, ignore_errors=True)
