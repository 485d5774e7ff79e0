"""A source that closes what was opened for it: a client, a cache, a process pool that several sources may share."""

from collections.abc import Sequence
from typing import Protocol

from agent.plan import Filter
from agent.sources.base import Hits, Source, as_hits, close_sources, credits_of


class Resource(Protocol):
    """Something to close; closing it again does no harm."""

    async def aclose(self) -> None: ...


class Owning:
    """Answers as its source does."""

    def __init__(self, source: Source, *resources: Resource) -> None:
        self._source = source
        self._resources = resources

    @property
    def credits_per_search(self) -> float:
        return credits_of(self._source)

    async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> Hits:
        return as_hits(self._source, await self._source.search(query, limit=limit, filters=filters))

    async def aclose(self) -> None:
        await close_sources([self._source])
        for resource in self._resources:
            await resource.aclose()
