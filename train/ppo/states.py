"""States of a run that it can go on from: one file each, whole or not there. What was saved before is never touched."""

from pathlib import Path
from typing import Any, Final

import torch

from agent.errors import SetupError
from train.common.saving import as_a_whole

STATES: Final = "states"
_PREFIX: Final = "step-"


def newest_state(out: Path) -> Path | None:
    """The newest state in a run's folder; None where there is none."""
    found = [path for path in (out / STATES).glob(f"{_PREFIX}*.pt") if path.stem.removeprefix(_PREFIX).isdigit()]
    return max(found, key=_number, default=None)


def step_of(state: Path) -> int:
    """Steps that were done when it was saved."""
    return _number(state)


def save_state(out: Path, step: int, state: dict[str, Any], *, keep: int) -> Path:
    """Write a state beside the others, and only then under its name; then remove the oldest.

    Args:
        out: folder of the run.
        step: steps that are done.
        state: of tensors and plain values.
        keep: states that stay, the newest ones.

    Raises:
        SetupError: it cannot be written, because the disk is full or otherwise.
    """
    folder = out / STATES
    made = folder / f"{_PREFIX}{step:06d}.pt"
    with as_a_whole(made) as written:
        torch.save(state, written)
    for old in sorted(folder.glob(f"{_PREFIX}*.pt"), key=_number)[:-keep]:
        old.unlink()
    return made


def load_state(path: Path, *, device: torch.device) -> dict[str, Any]:
    """Read a state.

    Raises:
        SetupError: it is damaged.
    """
    try:
        return torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch raises many kinds for a damaged file
        raise SetupError(
            f"{path} is damaged ({error}): remove it, and --resume continues from the previous one"
        ) from error


def _number(path: Path) -> int:
    return int(path.stem.removeprefix(_PREFIX))
