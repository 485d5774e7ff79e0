"""Passages: what sources find, and how what was found is gathered for the policy to read."""

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value: it never changes, and a field that nobody declared is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_serialization_defaults_required=True)


class Passage(Frozen):
    """One piece of text from one source. `number` is set where it was shown to the policy."""

    id: str
    source: str
    title: str
    text: str
    url: str = ""
    date: str = ""
    """ISO date, or empty where the source gives none."""
    score: float = 0.0
    rank: int = 0
    """Place in its own result list, from 1."""
    node: str = ""
    """The plan's node that found it."""
    number: int = 0
    """Its number in the context, from 1; 0 while it was not shown."""

    @property
    def identity(self) -> tuple[str, str]:
        """What makes two passages the same one: where it stands and what it says."""
        return (self.url or self.id, self.text)


def gather(
    found: Sequence[Sequence[Passage]],
    *,
    budget: int,
    seen: Iterable[Passage] = (),
    first_number: int = 1,
) -> tuple[Passage, ...]:
    """Make one numbered list of what the nodes of a plan found.

    Args:
        found: one list for each node, in the plan's order; each list is best first.
        budget: characters of title and text that may be shown. It is shared between the nodes: when it is short, each
            node keeps its best passages before any node gets its next one.
        seen: passages that earlier rounds showed; they are not shown again.
        first_number: number of the first passage.

    Returns:
        The kept passages in the order of the nodes, each with its number.
    """
    known = {passage.identity for passage in seen}
    unique: list[list[Passage]] = []
    for passages in found:
        fresh: list[Passage] = []
        for passage in passages:
            if passage.identity not in known:
                known.add(passage.identity)
                fresh.append(passage)
        unique.append(fresh)
    kept = _fit(unique, budget=budget)
    flat = [passage for passages in kept for passage in passages]
    return tuple(p.model_copy(update={"number": n}) for n, p in enumerate(flat, start=first_number))


def _fit(found: Sequence[Sequence[Passage]], *, budget: int) -> list[list[Passage]]:
    """Deal the budget out rank by rank, so that the last query is not the one that loses."""
    kept: list[list[Passage]] = [[] for _ in found]
    left = budget
    for rank in range(max(map(len, found), default=0)):
        for node, passages in enumerate(found):
            if rank >= len(passages):
                continue
            size = len(passages[rank].title) + len(passages[rank].text)
            if size <= left:
                kept[node].append(passages[rank])
                left -= size
    return kept
