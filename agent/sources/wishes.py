"""What one request wants of all its searches: filters, and a choice of sources. Plans and prompts know nothing of it.

The names that a plan may use stay as they are: one that was not chosen is answered by the chosen sources, and says so.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agent.plan import DOCUMENTS, EVERY_SOURCE, Filter
from agent.sources.base import Hits, Source, as_hits, credits_of
from agent.sources.choice import choose
from agent.sources.filters import joined


@dataclass(frozen=True)
class WishedSource:
    """A source as one request wants it asked. It owns nothing: whoever made the source closes it."""

    source: Source
    filters: tuple[Filter, ...] = ()
    note: str = ""

    @property
    def credits_per_search(self) -> float:
        return credits_of(self.source)

    async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> Hits:
        found = await self.source.search(query, limit=limit, filters=joined(filters, self.filters))
        hits = as_hits(self.source, found)
        told = hits.but(hits)
        told.notes = (self.note, *hits.notes) if self.note else hits.notes
        return told


def wished(
    sources: Mapping[str, Source], *, only: Collection[str] = (), filters: Sequence[Filter] = ()
) -> Mapping[str, Source]:
    """The sources of one request, under the same names.

    Args:
        sources: all that there are.
        only: names of those that may be asked; none, or `all` among them: each.
        filters: of every search.

    Raises:
        QuestionError: `only` holds a name that no source has.
    """
    if not only and not filters:
        return sources
    chosen = choose(sources, only)
    asked = [name for name in chosen if name in only]
    told = f"{', '.join(asked)} {'was' if len(asked) == 1 else 'were'} asked"
    notes = {name: f"{name} was not chosen: {told}" for name in sources if name not in (*chosen, DOCUMENTS)}
    return {
        name: WishedSource(chosen.get(name) or chosen[EVERY_SOURCE], tuple(filters), notes.get(name, ""))
        for name in sources
    }
