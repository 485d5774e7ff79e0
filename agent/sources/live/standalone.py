"""What the sources that plans name for themselves share: papers and code, from APIs whose keys are optional."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Final

import httpx2

from agent.errors import SourceErrorKind
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import ReadFilters, read_filters, unhonoured
from agent.sources.http import Api
from agent.sources.limits import Limits
from agent.sources.live.dates import utc_now
from agent.sources.live.queries import keywords
from agent.sources.live.reading import ResultRow, checked_key, passages

MAX_QUERY: Final = 250
MAX_AUTHORS: Final = 8


class StandaloneSource(ABC):
    """One search of one API under the source's own name. A subclass says how a query is sent, and what comes back."""

    name: ClassVar[str]
    BASE: ClassVar[str]
    HONOURS: ClassVar[frozenset[str]] = frozenset({"after", "before", "recent"})
    SCIENCE: ClassVar[bool] = True
    """Whether all that it finds is of the kind science."""
    LIMITS: ClassVar[Limits]
    """Without a key."""
    KEYED_LIMITS: ClassVar[Limits]
    MAX_RESULTS: ClassVar[int] = 100
    KINDS: ClassVar[Mapping[int, SourceErrorKind]] = {}
    """What a status means there."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        base: str = "",
        key: str = "",
        limits: Limits | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Ask the API.

        Args:
            client: shared; who made it closes it.
            base: of the API; empty: the usual one.
            key: for more requests; empty: none.
            limits: for the guard around this source.
            now: the time that relative dates and filters count from.

        Raises:
            SetupError: the key cannot be one.
        """
        self._key = checked_key(key, api=self.name, get_one=self.BASE) if key.strip() else ""
        self._api = Api(
            client,
            name=self.name,
            base=base or self.BASE,
            headers=self._headers(),
            kinds=self.KINDS,
            secret=self._key,
            unlogged=self._unlogged(),
        )
        self._now = now
        self.limits = limits or (self.KEYED_LIMITS if self._key else self.LIMITS)

    def _headers(self) -> dict[str, str]:
        """Sent with each request, the key among them where the API takes it there."""
        return {}

    def _unlogged(self) -> dict[str, str]:
        """The key of an API that takes it as a parameter alone."""
        return {}

    async def search(self, request: SearchRequest) -> SearchResult:
        """Search once.

        Raises:
            SourceError: with its kind.
        """
        wanted = read_filters(request.filters)
        honours = self.HONOURS | ({"kind"} if self.SCIENCE and wanted.kind == "science" else set[str]())
        notes = unhonoured(request.filters, honours=honours, by=self.name)
        text = keywords(request.query, MAX_QUERY)
        if request.limit < 1 or not text:
            return SearchResult(backend=self.name, notes=notes)
        rows = await self._rows(text, wanted, min(request.limit, self.MAX_RESULTS))
        found = passages(rows, by=self.name, topic=self.name, wanted=ReadFilters(), limit=request.limit)
        return SearchResult(found, backend=self.name, notes=notes)

    @abstractmethod
    async def _rows(self, text: str, wanted: ReadFilters, limit: int) -> Iterable[ResultRow]:
        """What the API finds for a few words, best first."""

    def _days(self, wanted: ReadFilters) -> tuple[str, str]:
        """The first and the last day that count; empty where there is no bound."""
        since, until = wanted.since(self._now().date()), wanted.before
        return since.isoformat() if since else "", until.isoformat() if until else ""


def paper_text(abstract: str, *, authors: Sequence[str], more: Sequence[str] = ()) -> str:
    """An abstract below its byline: who wrote it, where it was published, how often it is cited."""
    return "\n".join(filter(None, (byline(authors, more), abstract)))


def byline(authors: Sequence[str], more: Sequence[str] = ()) -> str:
    """The first authors and how many others there are, then what else is known: questions ask for these."""
    others = [f"{len(authors) - MAX_AUTHORS} others"] if len(authors) > MAX_AUTHORS else []
    return " · ".join(filter(None, (", ".join([*authors[:MAX_AUTHORS], *others]), *more)))


def citations(count: float | None) -> str:
    return "" if count is None else f"cited {count:,.0f} times"


def doi_url(doi: str) -> str:
    """`10.1000/x`, or an address of it."""
    bare = doi.strip().removeprefix("https://doi.org/").removeprefix("http://dx.doi.org/")
    return f"https://doi.org/{bare}" if bare.startswith("10.") else ""
