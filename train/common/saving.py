"""Files and folders of a run that are written as a whole or not at all; what was there stays whole until then."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.errors import SetupError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file or a folder beside the one that is there, to take its place in the end; a failure leaves none.

    Args:
        path: of what is saved.

    Yields:
        Where to write; nothing is there.
    """
    made = path.with_name(f"{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _remove(made)
        yield made
        _sync(made)
        if path.is_dir():
            shutil.rmtree(path)
        os.replace(made, path)
    except Exception:
        _remove(made)
        raise


@contextmanager
def as_a_whole(path: Path) -> Iterator[Path]:
    """As `replacing`, with a sentence for the person who trains.

    Raises:
        SetupError: it cannot be written, because the disk is full or otherwise.
    """
    try:
        with replacing(path) as made:
            yield made
    except Exception as error:  # safetensors, torch and the system have errors of their own for a full disk
        raise SetupError(
            f"{path} could not be saved: {error}; earlier saves are intact: free some space there, then continue "
            "with --resume"
        ) from error


def _sync(made: Path) -> None:
    """A name must not reach the disk before what it stands for."""
    for path in (made, *made.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
