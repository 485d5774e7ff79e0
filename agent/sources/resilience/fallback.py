"""Several backends as one source, tried in their order until there is enough. It neither retries nor waits.

Time is shared: a backend may use the n-th part of what is left of the caller's time, where n counts it and those that
have not been tried yet. What one leaves over is the next one's, and the last one may use all: however the first ones
hang, each one that is behind them is still tried. Where there is no deadline, each has a minute.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from agent.errors import Failure, SourceError, SourceErrorKind
from agent.evidence import Passage
from agent.sources.base import SearchRequest, SearchResult, Source, ask, close_sources, credits_of, named

LONGEST_SECONDS: Final = 60.0
TELLING: Final[Sequence[SourceErrorKind]] = ("auth", "quota", "rate", "timeout", "upstream", "parse", "bad_query")
"""Which kind names them all when every backend failed: first what a person must fix, last what the query is to blame
for, since a query is only bad where every backend says so."""


class NamedSource(Source, Protocol):
    """A source with a name for failures."""

    @property
    def name(self) -> str: ...


class Fallback:
    """The first backend that has enough answers; what several found is put together without doubles."""

    def __init__(self, name: str, backends: Sequence[NamedSource], *, enough: int = 1) -> None:
        """Ask `backends` in their order.

        Args:
            name: of the whole, for sentences.
            backends: first choice first.
            enough: with fewer passages than this the next one is tried too; 0: any answer is enough.
        """
        if not backends:
            raise ValueError(f"{name} has no backend")
        self.name = name
        self._backends = tuple(backends)
        self._enough = enough

    @property
    def credits_per_search(self) -> float:
        """All of them, where an answer may be too little; else the dearest."""
        credits = [credits_of(backend) for backend in self._backends]
        return sum(credits) if self._enough else max(credits)

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give at most `limit` passages; what failed on the way comes with them.

        Raises:
            SourceError: every backend that there was time for failed.
        """
        answers: list[SearchResult] = []
        errors: list[tuple[str, SourceError]] = []
        failures: list[Failure] = []
        for at, backend in enumerate(self._backends):
            left = request.seconds_left
            if at and not left:
                break
            share = min(left / (len(self._backends) - at), LONGEST_SECONDS)
            try:
                answer = await ask(backend, request, seconds=share)
            except SourceError as error:
                errors.append((backend.name, error))
                failures += error.failures or [Failure(backend.name, error.kind, str(error))]
                continue
            answers.append(answer)
            failures += answer.failures
            if sum(len(answer.passages) for answer in answers) >= min(self._enough, request.limit):
                break
        if not answers:
            raise _all_failed(errors, tuple(failures))
        return _together(answers, limit=request.limit, failures=tuple(failures))

    async def aclose(self) -> None:
        await close_sources(self._backends)


def _all_failed(errors: Sequence[tuple[str, SourceError]], failures: tuple[Failure, ...]) -> SourceError:
    waits = [error.retry_after for _, error in errors if error.retry_after is not None]
    return SourceError(
        "; ".join(named(name, error) for name, error in errors),
        kind=next(kind for kind in TELLING if any(error.kind == kind for _, error in errors)),
        retry_after=min(waits, default=None),
        failures=failures,
    )


def _together(answers: Sequence[SearchResult], *, limit: int, failures: tuple[Failure, ...]) -> SearchResult:
    """One list in the order in which they were tried, without what an earlier one found already."""
    passages: list[Passage] = []
    for answer in answers:
        there = {_place(passage) for passage in passages}
        passages += [passage for passage in answer.passages if _place(passage) not in there]
    if len(answers) > 1:
        passages = [passage.model_copy(update={"rank": rank}) for rank, passage in enumerate(passages, start=1)]
    found = [answer.backend for answer in answers if answer.passages] or [answer.backend for answer in answers]
    return SearchResult(
        tuple(passages[:limit]),
        backend="+".join(dict.fromkeys(found)),
        notes=tuple(dict.fromkeys(note for answer in answers for note in answer.notes)),
        credits=sum(answer.credits or 0.0 for answer in answers),
        usd=sum(answer.usd for answer in answers),
        failures=failures,
    )


def _place(passage: Passage) -> str:
    """The same page under http and https, with and without www, is one page; without an address its text decides."""
    if not passage.url:
        return passage.text
    bare = passage.url.partition("#")[0].partition("://")[2].removeprefix("www.").rstrip("/")
    return bare or passage.url
