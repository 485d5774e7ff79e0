"""Several index folders searched as one. Each is small enough to be built again in seconds; together they may be large.

The scores of a word depend on how rare it is in all of them: what one folder says of it is corrected.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from itertools import accumulate
from math import ceil, log
from pathlib import Path
from typing import Final

from agent.errors import CorpusError, SourceError
from agent.evidence import Passage
from agent.plan import Filter
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.bm25 import Rows, query_stems
from agent.sources.corpus.documents import StoredPassage
from agent.sources.corpus.folder import FileEntry, read_entries
from agent.sources.corpus.source import CorpusSource, allows, as_passage
from agent.sources.filters import ReadFilters
from agent.sources.titles import TITLES, named_first

BETWEEN: Final = "#"
"""In the id of a passage: the file's name before it, and its number in the file, from 1, behind it."""


@dataclass(frozen=True)
class Hit:
    """One passage that a query finds."""

    score: float
    shard: "IndexShard"
    row: int


class IndexShard:
    """One index folder, and which rows come from which of its files."""

    def __init__(self, folder: Path, *, today: Callable[[], date] = date.today) -> None:
        """Open an index folder.

        Raises:
            CorpusError: it is no index, or a damaged one.
        """
        self.corpus = CorpusSource(folder, today=today)
        self.entries: Sequence[FileEntry] = read_entries(folder, self.corpus.card)
        self._starts = [0, *accumulate(entry.rows for entry in self.entries)]
        if self._starts[-1] != self.rows:
            raise CorpusError(f"the index in {folder} is damaged: its parts do not fit; build it again")
        self._places = {entry.name: place for place, entry in enumerate(self.entries)}

    @property
    def rows(self) -> int:
        return self.corpus.card.documents

    def within(self, files: Collection[str] | None, hidden: Collection[str] = ()) -> Rows | None:
        """The rows of these files, or of all, but for the hidden ones; None: every row."""
        if files is None and self._places.keys().isdisjoint(hidden):
            return None
        kept = (
            place
            for place, entry in enumerate(self.entries)
            if (files is None or entry.name in files) and entry.name not in hidden
        )
        return [(self._starts[place], self._starts[place + 1]) for place in kept]

    def id_of(self, row: int) -> str:
        """What a passage is called: its file, and its number there."""
        place = bisect_right(self._starts, row) - 1
        return f"{self.entries[place].name}{BETWEEN}{row - self._starts[place] + 1}"

    def passages_of(self, file: str) -> Iterator[StoredPassage]:
        """Every passage of one file, in its order, under the ids that a search gives them; none of another's."""
        for start, end in self.within((file,)) or ():
            for row in range(start, end):
                yield self.corpus.stored(row).model_copy(update={"id": self.id_of(row)})


class ShardedSource:
    """Index folders as one `Source`: BM25 over all, filtered by date and address, and on request by file."""

    def __init__(
        self,
        shards: Sequence[IndexShard],
        *,
        name: str = "corpus",
        within: Sequence[Rows | None] = (),
        today: Callable[[], date] = date.today,
    ) -> None:
        """Search folders together.

        Args:
            shards: opened; none is nothing to find.
            name: of the source, in its passages.
            within: the rows of each of them that may be found; none: all.
            today: what the filter `recent` counts from.
        """
        self.name = name
        self._shards, self._today = tuple(shards), today
        self._within = within or [None] * len(self._shards)
        self._rows = sum(shard.rows for shard in self._shards)

    @property
    def state(self) -> str:
        """A hash of the passages that can be found."""
        parts = zip((shard.corpus.card.sha256 for shard in self._shards), self._within, strict=True)
        return sha256(repr(list(parts)).encode()).hexdigest()

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give at most `limit` passages, best first. It doesn't hold up the event loop.

        Raises:
            SourceError: an index is damaged.
        """
        try:
            found = await asyncio.to_thread(self.find, request.query, limit=request.limit, filters=request.filters)
        except CorpusError as error:
            raise SourceError(str(error)) from error
        notes = dict.fromkeys(note for shard in self._shards for note in shard.corpus.cannot(request.filters))
        return SearchResult(tuple(found), backend=self.name, notes=tuple(notes))

    def find(self, query: str, *, limit: int, filters: Sequence[Filter] = ()) -> list[Passage]:
        """Search right here: best first, at most `limit`."""
        found: dict[str, Passage] = {}  # one folder may hold a file that another holds, too
        wanted = {id(shard): shard.corpus.wanted(filters) for shard in self._shards}
        hits = named_first(self._hits(query, limit, wanted), query, of=_stored)
        for hit in hits:
            if len(found) >= limit:
                break
            stored, name = _stored(hit), hit.shard.id_of(hit.row)
            if name not in found and allows(stored, wanted[id(hit.shard)], today=self._today()):
                stored = stored.model_copy(update={"id": name})
                found[name] = as_passage(stored, source=self.name, score=hit.score, rank=len(found) + 1)
        return list(found.values())

    def _hits(self, query: str, limit: int, wanted: Mapping[int, ReadFilters]) -> list[Hit]:
        hits: list[Hit] = []
        stems = set(query_stems(query))
        rare = {stem: _rarity(self._rows, sum(s.corpus.frequency(stem) for s in self._shards)) for stem in stems}
        most = limit + ceil(TITLES / max(1, len(self._shards)))
        filtered = any(read != ReadFilters() for read in wanted.values())
        best: list[float] = []  # the scores of what would be read, in falling order: what exceeds none is left out
        for shard, within in zip(self._shards, self._within, strict=True):
            weights = {stem: rare[stem] / _rarity(shard.rows, shard.corpus.frequency(stem)) for stem in stems}
            least = best[-1] if len(best) == limit + TITLES and not filtered else 0.0
            deep = shard.rows if filtered else most
            ranked = shard.corpus.ranked(query, deep, weights=weights, within=within, above=least)
            if ranked:
                hits += [Hit(score, shard, row) for row, score in ranked]
                best = sorted([*best, *(score for _, score in ranked)], reverse=True)[: limit + TITLES]
        return sorted(hits, key=lambda hit: -hit.score)


def _stored(hit: Hit) -> StoredPassage:
    return hit.shard.corpus.stored(hit.row)


def _rarity(rows: int, holding: int) -> float:
    """What a word counts that is in `holding` of `rows` passages, as BM25 has it in Lucene."""
    return log(1 + (rows - holding + 0.5) / (holding + 0.5))
