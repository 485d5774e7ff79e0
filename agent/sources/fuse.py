"""`all`: every source is asked, and what they find is fused by reciprocal rank (Cormack et al., SIGIR 2009)."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from agent.errors import SourceError
from agent.evidence import Passage
from agent.plan import Filter
from agent.sources.base import Source, ask, credits_of

RANK_CONSTANT: Final = 60


class FusedSource:
    """Several sources as one. It answers as long as one of them does."""

    def __init__(self, sources: Mapping[str, Source], *, seconds: float = 8.0) -> None:
        """Fuse `sources`; one that needs longer than `seconds` is left out of an answer."""
        if not sources:
            raise ValueError("there is no source to fuse")
        self._sources = dict(sources)
        self._seconds = seconds

    @property
    def credits_per_search(self) -> float:
        return sum(credits_of(source) for source in self._sources.values())

    async def search(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        """Give the best `limit` passages of all sources.

        Raises:
            SourceError: every source failed.
        """
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(self._ask(source, query, limit=limit, filters=filters))
                for source in self._sources.values()
            ]
        answers = [task.result() for task in asked]
        failures = [answer for answer in answers if isinstance(answer, SourceError)]
        if len(failures) == len(answers):
            named = zip(self._sources, failures, strict=True)
            raise SourceError("; ".join(f"{name}: {error}" for name, error in named), kind=failures[0].kind)
        return fuse([answer for answer in answers if not isinstance(answer, SourceError)])[:limit]

    async def _ask(
        self, source: Source, query: str, *, limit: int, filters: Sequence[Filter]
    ) -> list[Passage] | SourceError:
        try:
            return await ask(source, query, limit=limit, seconds=self._seconds, filters=filters)
        except SourceError as error:
            return error


def fuse(answers: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Order passages by the sum of 1 / (60 + rank) over the lists that hold them; equal ones by the lists' order."""
    scores: dict[tuple[str, str], float] = {}
    passages: dict[tuple[str, str], Passage] = {}
    for answer in answers:
        for rank, passage in enumerate(answer, start=1):
            scores[passage.identity] = scores.get(passage.identity, 0.0) + 1 / (RANK_CONSTANT + rank)
            passages.setdefault(passage.identity, passage)
    order = sorted(passages, key=lambda identity: -scores[identity])
    return [
        passages[identity].model_copy(update={"score": scores[identity], "rank": rank})
        for rank, identity in enumerate(order, start=1)
    ]
