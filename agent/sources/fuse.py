"""`all`: every source is searched, and what they find is fused by reciprocal rank (Cormack et al., SIGIR 2009)."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from agent.errors import Failure, SourceError
from agent.evidence import Passage
from agent.sources.base import (
    SearchRequest,
    SearchResult,
    Source,
    ask,
    close_sources,
    credits_of,
    keep_seconds_of,
    named,
)
from agent.trace import Cached

RANK_CONSTANT: Final = 60


class FusedSource:
    """Several sources as one. One that needs longer than the caller waits is left out of an answer."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        if not sources:
            raise ValueError("there is no source to fuse")
        self.parts: Final[Mapping[str, Source]] = dict(sources)

    @property
    def credits_per_search(self) -> float:
        return sum(credits_of(source) for source in self.parts.values())

    @property
    def keep_seconds(self) -> float:
        return min(keep_seconds_of(source) for source in self.parts.values())

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give the best `limit` passages of all sources, with the failures and the names of those that gave nothing.

        Raises:
            SourceError: nothing was found, and a source failed: it might have found what the others do not have.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(source, request)) for source in self.parts.values()]
        answers = dict(zip(self.parts, (task.result() for task in tasks), strict=True))
        failed = {name: answer for name, answer in answers.items() if isinstance(answer, SourceError)}
        found = {name: answer for name, answer in answers.items() if isinstance(answer, SearchResult)}
        failures = tuple(failure for name in answers for failure in _failures(name, answers[name]))
        credits = sum(answer.credits or 0.0 for answer in answers.values())
        usd = sum(answer.usd for answer in answers.values())
        passages = fuse([result.passages for result in found.values()])
        if failed and not passages:
            why = [
                *(named(name, error) for name, error in failed.items()),
                *(f"{name} found nothing" for name in found),
            ]
            kind = next(iter(failed.values())).kind
            raise SourceError("; ".join(why), kind=kind, failures=failures, credits=credits, usd=usd)
        return SearchResult(
            tuple(passages[: request.limit]),
            backend="+".join(found),
            notes=tuple(dict.fromkeys(note for result in found.values() for note in result.notes)),
            cached=_cached(list(found.values())),
            credits=credits,
            usd=usd,
            failures=failures,
            incomplete=any(result.incomplete for result in found.values()),
            lost=tuple(dict.fromkeys([*failed, *(name for result in found.values() for name in result.lost)])),
        )

    async def aclose(self) -> None:
        await close_sources(self.parts.values())

    async def _ask(self, source: Source, request: SearchRequest) -> SearchResult | SourceError:
        try:
            return await ask(source, request, seconds=request.seconds_left)
        except SourceError as error:
            return error


def fused(sources: Mapping[str, Source], names: Sequence[str]) -> Source:
    """Those sources as one. Of what is fused already each part counts for itself, and the same part once."""
    parts: dict[str, Source] = {}
    for name in names:
        source = sources[name]
        for own, part in (source.parts if isinstance(source, FusedSource) else {name: source}).items():
            if all(part is not other for other in parts.values()):
                parts[f"{name}/{own}" if own in parts else own] = part
    return FusedSource(parts) if len(parts) > 1 else next(iter(parts.values()))


def _failures(name: str, answer: SearchResult | SourceError) -> tuple[Failure, ...]:
    """What failed in one source: its backends, or itself where it has none."""
    if isinstance(answer, SourceError) and not answer.failures:
        return (Failure(backend=name, kind=answer.kind, why=str(answer)),)
    return answer.failures


def _cached(answers: Sequence[SearchResult]) -> Cached:
    """Stale where anything is; fresh where no source was searched again."""
    states = {answer.cached for answer in answers}
    if "stale" in states:
        return "stale"
    return "fresh" if states == {"fresh"} else ""


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
