"""Files and folders of a run that are written as a whole or not at all; what was there stays whole until then."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.errors import SetupError


@contextmanager
def as_a_whole(path: Path) -> Iterator[Path]:
    """Write a file or a folder beside the one that is there, to take its place in the end.

    Args:
        path: of what is saved.

    Yields:
        Where to write; nothing is there.

    Raises:
        SetupError: it cannot be written, because the disk is full or otherwise.
    """
    made = path.with_name(f"{path.name}.new")
    try:
        _remove(made)
        yield made
        if path.is_dir():
            shutil.rmtree(path)
        os.replace(made, path)
    except Exception as error:  # safetensors, torch and the system have errors of their own for a full disk
        _remove(made)
        raise SetupError(
            f"{path} could not be saved: {error}; what was saved before is whole: make room there, then go on with "
            "--resume"
        ) from error


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
