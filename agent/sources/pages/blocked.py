"""Reports pages that were not fetched to the listener of the rollout that wanted them, where there is one."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from agent.sources.pages.errors import PageErrorKind

BLOCKED: Final[ContextVar[Callable[[PageErrorKind], None] | None]] = ContextVar("blocked", default=None)


def report_blocked(kind: PageErrorKind) -> None:
    """Report that a page stayed unread, and why."""
    if listener := BLOCKED.get():
        listener(kind)
