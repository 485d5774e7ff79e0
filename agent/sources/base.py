"""What a source is."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from agent.evidence import Passage
from agent.plan import Filter


class Source(Protocol):
    """Web, news, arXiv, a corpus, a knowledge graph: all answer a query with passages, best first."""

    async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        """Give at most `limit` passages.

        Raises:
            SourceError: the source failed; `kind` says how.
        """
        ...


@runtime_checkable
class Paid(Protocol):
    """A source whose searches cost something."""

    @property
    def credits_per_search(self) -> float: ...


def credits_of(source: Source) -> float:
    """What one search of a source costs; 0 for a source that says nothing about it."""
    return source.credits_per_search if isinstance(source, Paid) else 0.0
