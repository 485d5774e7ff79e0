"""Passages: what sources find, and how what was found is gathered for the policy to read."""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict

from agent.outbound.urls import host_of

BETWEEN_TITLES: Final = " › "
"""Between a document's title and the headings above a passage."""
_WORTH_SHOWING: Final = 40
"""Characters of a passage that was cut."""
_ADDRESS: Final = re.compile(r"https?://[^\s\x00-\x1f\x7f/?#\\][^\s\x00-\x1f\x7f]{0,4000}", re.IGNORECASE)


def web_address(url: str) -> str:
    """The URL where a browser opens it as a page: http or https with a host, on one line. Otherwise empty.

    Readers make links of addresses, and strangers write them: `javascript:` and `data:` run code, `file:` reads.
    """
    url = url.strip().replace(" ", "%20")
    if not _ADDRESS.fullmatch(url):
        return ""
    return url if host_of(url) else ""


WebAddress = Annotated[str, AfterValidator(web_address)]
"""An address that a client may open, or empty: whatever else a source gives is left out."""


class Frozen(BaseModel):
    """A value: it never changes, and an undeclared field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_serialization_defaults_required=True)


class Passage(Frozen):
    """One piece of text from one source. `number` is set where it was shown to the policy."""

    id: str
    source: str
    title: str
    text: str
    url: WebAddress = ""
    date: str = ""
    """ISO date, or empty where the source gives none."""
    score: float = 0.0
    """As its source counts it, or 0; no two sources count alike. Merged lists have the score of the merge."""
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
    limit: int | None = None,
    seen: Iterable[Passage] = (),
    first_number: int = 1,
    apart: bool = False,
) -> tuple[Passage, ...]:
    """Make one numbered list of what the nodes of a plan found.

    Args:
        found: one list for each node, in the plan's order; each list is best first.
        budget: characters of title and text that may be shown. It is shared between the nodes: when it is short, each
            node keeps its best passages before any node gets its next one.
        limit: passages that may be shown; shared in the same way. None: as many as fit.
        seen: passages that earlier rounds showed; they are not shown again.
        first_number: number of the first passage, and with `apart` of each node's first one.
        apart: whether each node has a list of its own: what another node found, too, is then no repeat.

    Returns:
        The kept passages in the order of the nodes, each with its number. Each node's best passage is cut where the
        budget is too short for all of these; any other passage is kept whole or not at all.
    """
    known = {passage.identity for passage in seen}
    unique: list[list[Passage]] = []
    shown = frozenset(known)
    for passages in found:
        known = set(shown) if apart else known
        fresh: list[Passage] = []
        for passage in passages:
            if passage.identity not in known:
                known.add(passage.identity)
                fresh.append(passage)
        unique.append(fresh)
    kept = _fit(_cut_best(unique, budget=budget), budget=budget, limit=limit)
    lists = kept if apart else [[passage for passages in kept for passage in passages]]
    return tuple(
        p.model_copy(update={"number": n}) for passages in lists for n, p in enumerate(passages, start=first_number)
    )


def _cut_best(found: Sequence[Sequence[Passage]], *, budget: int) -> list[list[Passage]]:
    """Cut the best passage of each node to a length at which all of them fit; short ones leave room to long ones."""
    sizes = sorted(_size(passages[0]) for passages in found if passages)
    level = left = max(budget, 0)
    for at, size in enumerate(sizes):
        level = left // (len(sizes) - at)
        if size > level:
            break
        left -= size
        level = size
    return [[_cut(passage, level) if not rank else passage for rank, passage in enumerate(ps)] for ps in found]


def _cut(passage: Passage, size: int) -> Passage:
    """Keep `size` characters, the last of them "…"; fewer words than a few are not shown."""
    room = size - len(passage.title) - 1
    if _size(passage) <= size or room < _WORTH_SHOWING:
        return passage
    words = passage.text.lstrip()[:room].rsplit(maxsplit=1)
    return passage.model_copy(update={"text": "".join(words[:1]) + "…"})


def _size(passage: Passage) -> int:
    return len(passage.title) + len(passage.text)


def _fit(found: Sequence[Sequence[Passage]], *, budget: int, limit: int | None) -> list[list[Passage]]:
    """Deal the budget out rank by rank, so that the last query is not the one that loses."""
    kept: list[list[Passage]] = [[] for _ in found]
    left = budget
    for rank in range(max(map(len, found), default=0)):
        for node, passages in enumerate(found):
            if rank >= len(passages) or sum(map(len, kept)) == limit:
                continue
            if _size(passages[rank]) <= left:
                kept[node].append(passages[rank])
                left -= _size(passages[rank])
    return kept
