"""The sources of one request: some of those that there are, by their names, and filters for every search of them.

Nothing here opens or closes a source.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.errors import QuestionError, nearest
from agent.plan import DOCUMENTS, EVERY_SOURCE, UNNAMED, Filter
from agent.sources.base import SearchRequest, SearchResult, Source, credits_of, keep_seconds_of
from agent.sources.filters import joined
from agent.sources.fuse import fused


def names_of(sources: Mapping[str, Source]) -> tuple[str, ...]:
    """The names to choose from: without `all`, which is no choice."""
    return tuple(name for name in sources if name != EVERY_SOURCE and name not in UNNAMED)


def distinct(sources: Mapping[str, Source]) -> tuple[str, ...]:
    """The names but `all` and those that no plan names; of those that mean the same source the first one."""
    first: dict[int, str] = {}
    for name in names_of(sources):
        first.setdefault(id(sources[name]), name)
    return tuple(first.values())


def choose(sources: Mapping[str, Source], names: Collection[str]) -> dict[str, Source]:
    """Only the named sources, with an `all` of their own; no names, or `all` among them, means every source.

    Raises:
        QuestionError: a name that no source has; the sentence says which there are.
    """
    wanted = list(dict.fromkeys(name.strip().lower() for name in names))
    if not wanted or EVERY_SOURCE in wanted:
        return dict(sources)
    there = names_of(sources)
    if unknown := [name for name in wanted if name not in there]:
        near = nearest(unknown[0], there)
        raise QuestionError(
            f"there is no source {unknown[0]!r}{near}; choose from: {', '.join(there)}", about="sources"
        )
    picked = {name: sources[name] for name in wanted}
    picked[EVERY_SOURCE] = fused(picked, distinct(picked))
    others = [name for name in distinct(picked) if name != "kg"]
    if "kg" in distinct(picked) and others:
        picked[DOCUMENTS] = fused(picked, others)
    return picked


@dataclass(frozen=True)
class SelectedSource:
    """A source with the filters of one request. It does not own the source, and has no `aclose`."""

    source: Source
    filters: tuple[Filter, ...] = ()
    note: str = ""
    """Added to the notes of each result."""

    @property
    def credits_per_search(self) -> float:
        return credits_of(self.source)

    @property
    def keep_seconds(self) -> float:
        return keep_seconds_of(self.source)

    async def search(self, request: SearchRequest) -> SearchResult:
        found = await self.source.search(replace(request, filters=joined(request.filters, self.filters)))
        return replace(found, notes=(self.note, *found.notes)) if self.note else found


def selected(
    sources: Mapping[str, Source], *, only: Collection[str] = (), filters: Sequence[Filter] = ()
) -> Mapping[str, Source]:
    """The sources of one request, under the same names, as plans and prompts know nothing of the selection.

    A name that was not chosen is answered by the chosen sources, with a note that says so.

    Args:
        sources: all that there are.
        only: the chosen names; none, or `all` among them: every source.
        filters: for every search.

    Raises:
        QuestionError: `only` holds a name that no source has.
    """
    if not only and not filters:
        return sources
    chosen = choose(sources, only)
    named = [name for name in chosen if name in only]
    which = f"{', '.join(named)} {'was' if len(named) == 1 else 'were'} searched"
    notes = {name: f"{name} was not chosen: {which}" for name in sources if name not in (*chosen, DOCUMENTS)}
    return {
        name: SelectedSource(chosen.get(name) or chosen[EVERY_SOURCE], tuple(filters), notes.get(name, ""))
        for name in sources
    }
