"""How long the caller still waits for an answer: `ask` says it, the wrappers around a back end plan by it.

A source need not look: whoever asked cuts it off in time. One that does look can stop before that, and say what failed.
"""

import asyncio
import math
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

SPARE_SECONDS: Final = 0.05
"""A source is told that it has so much less time than it has, at most a twentieth: to say what failed."""


_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)
"""A moment of the running event loop's clock."""


def time_left() -> float:
    """Seconds until the caller leaves, not below 0; infinite where nobody said."""
    deadline = _DEADLINE.get()
    return math.inf if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())


@contextmanager
def within(seconds: float) -> Generator[None]:
    """What is asked inside has at most `seconds`, and no more than there was outside; both less a little to spare."""
    left = min(seconds, time_left())
    token = _DEADLINE.set(asyncio.get_running_loop().time() + left - min(SPARE_SECONDS, left / 20))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def spoken(seconds: float) -> str:
    """A duration for a sentence, in the largest unit of which there are at least two."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.3g} s"
