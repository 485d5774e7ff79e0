"""The searches of an earlier run, used again where a later one searches for the same."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.plan import Filter
from agent.sources.base import SearchRequest, SearchResult, Source, credits_of
from agent.sources.filters import joined
from agent.trace import Planned, Searched, Trace

Key = tuple[str, str, frozenset[tuple[str, str]]]
"""Source, query and filters."""


def searches_of(trace: Trace) -> dict[Key, SearchResult]:
    """What each search of a run found; those that found nothing are searched again."""
    filters: dict[tuple[int, str], tuple[Filter, ...]] = {}
    found: dict[Key, SearchResult] = {}
    for step in trace.steps:
        if isinstance(step, Planned):
            filters |= {(step.round, node.id): node.filters for node in step.plan.nodes}
        elif isinstance(step, Searched) and step.passages:
            wanted = joined(filters.get((step.round, step.node), ()), trace.filters)
            passages = tuple(passage.model_copy(update={"number": 0, "node": ""}) for passage in step.passages)
            result = SearchResult(passages, backend=step.backend, cached="reused", credits=0.0)
            found[_key(step.source, step.query, wanted)] = result
    return found


@dataclass(frozen=True)
class ReusedSource:
    """A source that is not searched again for what an earlier run found. It does not own the source."""

    name: str
    source: Source
    found: Mapping[Key, SearchResult]

    @property
    def credits_per_search(self) -> float:
        return credits_of(self.source)

    async def search(self, request: SearchRequest) -> SearchResult:
        known = self.found.get(_key(self.name, request.query, request.filters))
        return known if known and len(known.passages) <= request.limit else await self.source.search(request)


def _key(source: str, query: str, filters: tuple[Filter, ...]) -> Key:
    return source, " ".join(query.casefold().split()), frozenset((one.name, one.value) for one in filters)
