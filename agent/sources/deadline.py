"""How long the caller still waits for an answer: `ask` says it, the wrappers around a back end plan by it.

A source need not look: whoever asked cuts it off in time. One that does look can stop before that, and say what failed.
"""

import asyncio
import math
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

SPARE_SECONDS: Final = 0.05
"""A source is told that it has so much less time than it has, at most a twentieth: to say what failed."""


@dataclass
class Deadline:
    """A moment of the running event loop's clock; somebody who joins with more time may put it off."""

    at: float

    def put_off(self, seconds: float) -> None:
        """Somebody waits for so long, perhaps longer than those before."""
        self.at = max(self.at, _end(seconds))


_CURRENT: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def time_left() -> float:
    """Seconds until the caller leaves, not below 0; infinite where nobody said."""
    deadline = _CURRENT.get()
    return math.inf if deadline is None else max(0.0, deadline.at - asyncio.get_running_loop().time())


@contextmanager
def within(seconds: float) -> Generator[Deadline]:
    """What is asked inside has at most `seconds`, and no more than there was outside; both less a little to spare."""
    deadline = Deadline(_end(min(seconds, time_left())))
    token = _CURRENT.set(deadline)
    try:
        yield deadline
    finally:
        _CURRENT.reset(token)


def spoken(seconds: float) -> str:
    """A duration for a sentence, in the largest unit of which there are at least two."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.3g} s"


def _end(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds - min(SPARE_SECONDS, seconds / 20)
