"""What a source is."""

from collections.abc import Sequence
from typing import Protocol

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
