"""Some of the sources that there are, by their names; `all` then asks only these. It opens and closes none."""

from collections.abc import Collection, Mapping, Sequence

from agent.errors import QuestionError, nearest
from agent.plan import DOCUMENTS, EVERY_SOURCE, UNNAMED
from agent.sources.base import Source
from agent.sources.fuse import FusedSource


def names_of(sources: Mapping[str, Source]) -> tuple[str, ...]:
    """The names that somebody may choose from: without `all`, which is no choice."""
    return tuple(name for name in sources if name != EVERY_SOURCE and name not in UNNAMED)


def distinct(sources: Mapping[str, Source]) -> tuple[str, ...]:
    """The names but `all` and those that no plan names; of those that mean the same source the first one."""
    first: dict[int, str] = {}
    for name in names_of(sources):
        first.setdefault(id(sources[name]), name)
    return tuple(first.values())


def fused(sources: Mapping[str, Source], names: Sequence[str]) -> Source:
    """Those sources as one."""
    different = {name: sources[name] for name in names}
    return FusedSource(different) if len(different) > 1 else next(iter(different.values()))


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
        raise QuestionError(f"there is no source {unknown[0]!r}{near}; there are: {', '.join(there)}", about="sources")
    picked = {name: sources[name] for name in wanted}
    picked[EVERY_SOURCE] = fused(picked, distinct(picked))
    others = [name for name in distinct(picked) if name != "kg"]
    if "kg" in distinct(picked) and others:
        picked[DOCUMENTS] = fused(picked, others)
    return picked
