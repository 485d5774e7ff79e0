"""Who asks: the request's id and the key that it came with. Set by the access middleware, read where runs are counted.

A task that is started for a request inherits it, also one that outlives the request.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final


@dataclass(frozen=True)
class Caller:
    """One request as those see it who do not know the web."""

    request_id: str = ""
    key: str = ""
    """Id of its key, never the key itself; empty: it came without one, or with the server's own."""
    parent: str = ""
    """The `traceparent` that it came with."""
    began: float = field(default_factory=perf_counter)


CALLER: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)


def caller() -> Caller:
    """Who asks here; a caller without a name where there is no request, as in a command."""
    return CALLER.get() or Caller()
