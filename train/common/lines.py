"""Files of a run that grow by lines of JSON, each about a step, which is what a line begins with."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from agent.errors import SetupError
from agent.files.foreign import no_link, open_file
from train.common.saving import as_a_whole

_STEP: Final = re.compile(rb'\{"step": (\d+)[,}]')


def add_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines behind those that are there.

    Raises:
        SetupError: the disk is full, or the file cannot be written.
    """
    try:
        with open(path, "a", encoding="utf-8", opener=no_link) as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise SetupError(
            f"{path} cannot be written: {error.strerror or error}; what was saved before is whole: make room there, "
            "then go on with --resume"
        ) from error


def keep_lines(path: Path, *, after: int) -> list[str]:
    """Remove the lines of steps that are done again, and one that was cut off.

    Args:
        path: of the file, which may be missing.
        after: the last step that counts.

    Returns:
        The lines that are left.

    Raises:
        SetupError: the file holds other lines, or cannot be read or written.
    """
    try:
        with open_file(path) as file:
            found = file.read()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror or error}") from error
    lines = found.split(b"\n")[:-1]  # a text may hold other ends of lines
    kept = [line for number, line in enumerate(lines, start=1) if _step(path, number, line) <= after]
    if (left := b"".join(line + b"\n" for line in kept)) != found:
        with as_a_whole(path) as made:
            made.write_bytes(left)
    return [line.decode(errors="replace") for line in kept]


def _step(path: Path, number: int, line: bytes) -> int:
    if found := _STEP.match(line):
        return int(found[1])
    raise SetupError(f"{path}, line {number} cannot be read: it does not begin with a step; remove the file")
