"""Functions that workers of another process can find."""

import os
import signal
import threading
from pathlib import Path

from agent.errors import SourceError
from agent.parallel.workers import at_end
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


def hold(pipe: Path) -> None:
    """Report the process, and never come back; the reader of the pipe sees its end when the process is gone."""
    with pipe.open("w", encoding="utf-8") as line:
        line.write(f"{os.getpid()}\n")
        line.flush()
        threading.Event().wait()


def first_dies(named: tuple[int, Path]) -> int:
    """0 ends its process, and 1 comes to its end after that."""
    number, pipe = named
    if number == 0:
        with pipe.open("w", encoding="utf-8"):
            os.kill(os.getpid(), signal.SIGKILL)
    if number == 1:
        pipe.read_text(encoding="utf-8")
    return number


def waits(named: tuple[int, Path]) -> int:
    """0 waits until something is written."""
    number, pipe = named
    if number == 0:
        pipe.read_text(encoding="utf-8")
    return number


def closing(file: Path) -> bool:
    """Have something done at the worker's end."""
    at_end(lambda: file.write_text("closed", encoding="utf-8"))
    return file.exists()


class Odd(Exception):
    """One that cannot be copied."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def odd(number: int) -> int:
    raise Odd(number, 2)


def where(number: int) -> tuple[int, int, str]:
    """The item, its process, and how many cores that one was given."""
    return number, os.getpid(), secret_named("OMP_NUM_THREADS").get_secret_value()
