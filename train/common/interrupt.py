"""How a run stops and goes on: Ctrl-C ends it after the current step, so that its state is whole; --resume goes on."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.errors import SetupError


def check_folder(out: Path, *, begun: bool, resume: bool) -> None:
    """Refuse to begin over a run, and to go on with none.

    Args:
        out: folder of the run.
        begun: whether it holds a state to go on from.
        resume: whether the run is to go on.

    Raises:
        SetupError: the two do not fit.
    """
    if begun and not resume:
        raise SetupError(f"{out} already has a run; add --resume to continue it, or choose another --out")
    if resume and not begun:
        raise SetupError(f"nothing to resume in {out}; start without --resume")


def stopped_early(out: Path) -> SetupError:
    """What a command ends with whose run was interrupted, and saved."""
    return SetupError(f"interrupted and saved; to continue in {out}, run the same command with --resume")


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C ends the run after its current step, so that the state is whole; a second one ends it at once."""
    hit = False

    def on_interrupt(*_: object) -> None:
        nonlocal hit
        if hit:
            raise KeyboardInterrupt
        hit = True

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield lambda: hit
    finally:
        signal.signal(signal.SIGINT, before)
