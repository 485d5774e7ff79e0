"""Where commands write: results on standard output, everything else on standard error. Lines are never broken.

This is the boundary to the terminal: nothing that was written elsewhere reaches it with what a terminal obeys.
"""

import json
import logging
import sys
import traceback
from collections.abc import Iterable
from functools import cache

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from agent.sanitize.text import printable, printable_json

__all__ = [
    "complain",
    "guard_logs",
    "messages",
    "note",
    "output",
    "print_json",
    "print_text",
    "print_traceback",
    "printable",
]


class SafeConsole(Console):
    """A console whose texts are all `printable`. Colours and movements are Rich's own and stand beside the text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


@cache
def output() -> Console:
    """Standard output, for results."""
    return SafeConsole(highlight=False, soft_wrap=True)


@cache
def messages() -> Console:
    """Standard error, for notices, progress and complaints."""
    return SafeConsole(stderr=True, highlight=False, soft_wrap=True)


def note(sentence: str) -> None:
    """Say something on standard error that is good to know."""
    messages().print(Text(printable(sentence), style="yellow"))


def complain(sentence: str) -> None:
    """Say on standard error why something was not done."""
    messages().print(Text.assemble(("cairn: ", "bold red"), printable(sentence)))


def print_json(value: object) -> None:
    """Print one JSON object on standard output, and nothing else."""
    print_text(json.dumps(value, ensure_ascii=False), json=True)


def print_text(text: str, *, json: bool = False, end: str = "\n") -> None:
    """Print text on standard output as it stands, but for what a terminal would obey.

    Args:
        text: from anywhere.
        json: it is JSON, in which such characters are escaped, so that nothing of it is lost.
        end: behind it.
    """
    sys.stdout.write((printable_json(text) if json else printable(text)) + end)


def print_traceback(error: BaseException) -> None:
    """Print the traceback of an unexpected error on standard error."""
    sys.stderr.write(printable("".join(traceback.format_exception(error))))


def guard_logs() -> None:
    """Have the lines that libraries log on standard error, where no command set up logs of its own, be `printable`."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Printable())


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))
