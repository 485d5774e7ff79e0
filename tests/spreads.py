"""Functions that workers of another process can find."""

import os
import signal

from agent.errors import SourceError
from agent.settings import secret_named


def square(number: int) -> int:
    return number * number


def fail(number: int) -> int:
    """Refuse 3, in the way of a source."""
    if number == 3:
        raise SourceError("there is no 3", kind="quota", retry_after=2.0)
    return number


def die(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def where(number: int) -> tuple[int, int, str]:
    """The item, its process, and how many cores that one was given."""
    return number, os.getpid(), secret_named("OMP_NUM_THREADS").get_secret_value()
