"""Your documents as a source: an index on disk, opened by mmap."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final, Self

import numpy as np

from agent.errors import CorpusError, SourceError
from agent.evidence import Passage
from agent.files.own import make_private, private_folder
from agent.plan import Filter
from agent.sources.arrays import load_array
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.bm25 import Bm25Index, Rows
from agent.sources.corpus.build import Outcome, build_index, update_index
from agent.sources.corpus.documents import StoredPassage
from agent.sources.corpus.folder import CARD, FORMAT, INDEX, OFFSETS, RECORDS, IndexCard, is_index, read_card
from agent.sources.corpus.records import Records
from agent.sources.filters import ReadFilters, on_wanted_host, read_filters, unhonoured
from agent.sources.titles import TITLES, named_first

__all__ = ["CARD", "CorpusSource", "IndexCard", "Outcome", "build_index", "cached_index", "read_card", "update_index"]

HONOURS: Final = frozenset({"after", "before", "recent", "site", "not"})
THREAD_ROWS: Final = 20_000
"""From here on a search takes so long that it leaves the event loop."""
_NAMED: Final = 5
"""Files that are named where some cannot be read."""
_log: Final = logging.getLogger(__name__)
CACHE: Final = Path.home() / ".cache" / "cairn" / "indexes"


class CorpusSource:
    """An index as a `Source`. It filters by date and address, where its documents have them."""

    def __init__(self, folder: Path, *, name: str = "corpus", today: Callable[[], date] = date.today) -> None:
        """Open an index folder.

        Args:
            folder: the index.
            name: of the source, in its passages.
            today: what the filter `recent` counts from.

        Raises:
            CorpusError: the folder is no index, or a damaged one.
        """
        self.name = name
        self._today = today
        self.card = read_card(folder)
        while True:
            self.data = folder / self.card.data
            try:
                self._index = Bm25Index.open(self.data / INDEX)
                self._records = Records(self.data / RECORDS, load_array(self.data / OFFSETS, np.int64))
                break
            except (CorpusError, OSError, ValueError) as error:
                opened, self.card = self.card, read_card(folder)
                if self.card.data == opened.data:
                    raise CorpusError(f"the index in {folder} is damaged ({error}); build it again") from error
                # a build has put another one in its place just now
        if not self._index.rows == len(self._records) == self.card.documents:
            raise CorpusError(f"the index in {folder} is damaged: its parts do not fit; build it again")

    @classmethod
    def open(cls, path: Path, *, name: str = "corpus", cache: Path = CACHE) -> Self:
        """Open an index folder; of a file or folder of documents, an index is made in the cache and opened.

        Raises:
            CorpusError: there is nothing, nothing that can be read, or a damaged index.
        """
        if is_index(path):
            return cls(path, name=name)
        return cls(cached_index([path], cache=cache), name=name)

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give at most `limit` passages, best first.

        Raises:
            SourceError: the index is damaged.
        """
        try:
            if self.card.documents < THREAD_ROWS:
                found = self.find(request.query, limit=request.limit, filters=request.filters)
            else:
                found = await asyncio.to_thread(self.find, request.query, limit=request.limit, filters=request.filters)
        except CorpusError as error:
            raise SourceError(str(error)) from error
        return SearchResult(tuple(found), backend=self.name, notes=self.cannot(request.filters))

    def find(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        """Search right here: best first, at most `limit`."""
        wanted = self.wanted(filters)
        ranked = self.ranked(query, self.card.documents if wanted != ReadFilters() else max(limit, TITLES))
        ranked = named_first(ranked, query, of=lambda found: self._records[found[0]])
        return self.passages(ranked, limit, wanted)

    def stored(self, row: int) -> StoredPassage:
        """One passage of the index.

        Raises:
            CorpusError: the index is damaged.
        """
        return self._records[row]

    def frequency(self, stem: str) -> int:
        """In how many passages a stem occurs."""
        return self._index.frequency(stem)

    def documents(self) -> Iterator[StoredPassage]:
        """Every passage of the index, read one by one."""
        return iter(self._records)

    def ranked(
        self,
        query: str,
        limit: int,
        *,
        weights: Mapping[str, float] | None = None,
        within: Rows | None = None,
        above: float = 0.0,
    ) -> list[tuple[int, float]]:
        """Rows and their BM25 scores, best first, at most `limit`; the rest as `Bm25Index.search` has it."""
        return self._index.search(query, limit, weights=weights, within=within, above=above)

    def wanted(self, filters: Sequence[Filter]) -> ReadFilters:
        """The conditions that documents here can be measured by."""
        return read_filters(f for f in filters if self._honours(f))

    def cannot(self, filters: Sequence[Filter]) -> tuple[str, ...]:
        """One sentence for each filter that nothing here can be measured by."""
        known = [f for f in filters if f.name in HONOURS and not self._honours(f)]
        lacking = (
            f"{self.name} cannot filter by '{f.name} {f.value}': none of its documents has "
            f"{'an address' if f.name in ('site', 'not') else 'a date'}"
            for f in known
        )
        return (*unhonoured(filters, honours=HONOURS, by=self.name), *lacking)

    def _honours(self, condition: Filter) -> bool:
        """A condition on what no document says would only hide everything."""
        there = self.card.with_url if condition.name in ("site", "not") else self.card.dated
        return condition.name in HONOURS and there > 0

    def passages(self, ranked: Iterable[tuple[int, float]], limit: int, wanted: ReadFilters) -> list[Passage]:
        """The first `limit` rows that meet the conditions, as passages."""
        found: list[Passage] = []
        for row, score in ranked:
            if len(found) >= limit:
                break
            document = self._records[row]
            if allows(document, wanted, today=self._today()):
                found.append(as_passage(document, source=self.name, score=score, rank=len(found) + 1))
        return found


def as_passage(document: StoredPassage, *, source: str, score: float, rank: int) -> Passage:
    """What is stored, as a search gives it."""
    return Passage(
        id=document.id,
        source=source,
        title=document.title,
        text=document.text,
        url=document.url,
        date=document.date,
        score=score,
        rank=rank,
    )


def allows(document: StoredPassage, wanted: ReadFilters, *, today: date) -> bool:
    """Whether a document meets the conditions.

    One without a date passes those on dates, since nothing is known that would exclude it; one that knows its year
    only passes if a day of that year would.
    """
    after = wanted.since(today)
    if document.date:
        known = len(document.date) - len("2026")
        first, last = ((document.date + rest[known:])[:10] for rest in ("-01-01", "-12-31"))
        if (after and last < after.isoformat()) or (wanted.before and first > wanted.before.isoformat()):
            return False
    return not (wanted.sites or wanted.not_sites) or on_wanted_host(document.url, wanted)


def cached_index(paths: Sequence[Path], *, cache: Path = CACHE) -> Path:
    """Give an index of these documents that is up to date; what did not change since the last time is kept.

    Raises:
        CorpusError: documents that cannot be read.
        NotPrivate: other users may write into the cache.
    """
    names = [path.resolve().as_posix() for path in paths]
    folder = cache / hashlib.sha256(repr((FORMAT, names)).encode()).hexdigest()[:24]
    private_folder(cache)
    outcome = update_index(paths, folder, wait=True)
    make_private(folder)
    left_out = [skip for skip in outcome.skipped if skip.reason in ("link", "lines", "unreadable")]
    if left_out:
        named = "; ".join(f"{skip.name}: {skip.why}" for skip in left_out[:_NAMED])
        more = f"; and {len(left_out) - _NAMED:,} more" if len(left_out) > _NAMED else ""
        _log.warning("not all of %s can be searched (%s%s)", ", ".join(map(str, paths)), named, more)
    return folder
