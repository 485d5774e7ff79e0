"""Who is told of pages that were not fetched: a listener of the rollout that asked. No listener: nobody."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from agent.sources.pages.errors import PageErrorKind

BLOCKED: Final[ContextVar[Callable[[PageErrorKind], None] | None]] = ContextVar("blocked", default=None)


def tell_blocked(kind: PageErrorKind) -> None:
    """Say that a page stayed unread, and why."""
    if listener := BLOCKED.get():
        listener(kind)
