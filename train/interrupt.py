"""Ctrl-C during a run: it ends after the current step, so that its state is whole."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
