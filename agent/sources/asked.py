"""What a search is made for: the loop says it, a filter that chooses among passages reads it."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """What a search is made for, where more is known of it than its query."""

    question: str = ""
    """The user's own question, of which the query is a part."""
    entities: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    """What a policy's structured query asks for."""


_asked: ContextVar[Asked] = ContextVar("asked", default=Asked())  # noqa: B039 - frozen


@contextmanager
def asked_for(asked: Asked) -> Generator[None]:
    """Let the filters of all searches in here, and in tasks that are started here, know what is asked."""
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)


def what_for() -> Asked:
    """What the search that runs is made for; empty where nobody said."""
    return _asked.get()
