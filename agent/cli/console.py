"""Where commands write: results on standard output, everything else on standard error."""

from functools import cache

from rich.console import Console
from rich.markup import escape


@cache
def output() -> Console:
    """Standard output, for results."""
    return Console(highlight=False, soft_wrap=True)


@cache
def messages() -> Console:
    """Standard error, for notices, progress and complaints."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def complain(sentence: str) -> None:
    """Say on standard error why something was not done."""
    messages().print(f"[bold red]cairn:[/] {escape(sentence)}")
