"""What is searched of libraries: their index folders, opened once and again where one was built."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from agent.errors import CorpusError, SourceError
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.corpus.folder import CARD
from agent.sources.corpus.shards import IndexShard, ShardedSource
from server.libraries.folder import LibraryFolder
from server.store import StoreError

logger = logging.getLogger(__name__)

_OPEN: Final = 256
"""Shards that stay open."""


class OpenShards:
    """The shards of every library that was searched lately. Searches open them in threads."""

    def __init__(self, folder: LibraryFolder) -> None:
        self._folder = folder
        self._open: OrderedDict[str, IndexShard] = OrderedDict()
        """By their folders and when these were built, the last used last."""
        self._lock = threading.Lock()

    def of(self, library: str) -> list[IndexShard]:
        """The shards of a library; a damaged one is left out, and said."""
        folder = self._folder.shards(library)
        numbers = sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []
        found: list[IndexShard] = []
        for number in numbers:
            with suppress(FileNotFoundError):  # it was removed just now
                place = self._folder.shard(library, number)
                state = (place / CARD).stat()
                try:
                    found.append(self._shard(f"{place} {state.st_ino} {state.st_mtime_ns}", library, number))
                except CorpusError as error:
                    logger.warning("a part of library %s cannot be searched: %s", library, error)
        return found

    def forget(self, library: str) -> None:
        """What is open of a library may be an older state: it is opened again when it is searched."""
        folder = f"{self._folder.shards(library)}/"
        with self._lock:
            for key in [key for key in self._open if key.startswith(folder)]:
                del self._open[key]

    def _shard(self, key: str, library: str, number: int) -> IndexShard:
        with self._lock:
            shard = self._open.pop(key, None)
        shard = shard or IndexShard(self._folder.shard(library, number))
        with self._lock:
            self._open[key] = shard
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
        return shard


class CurrentSource:
    """Libraries as one source whose every search finds them as they are when it begins: what was deleted is gone."""

    def __init__(self, now: ShardedSource, opened: Callable[[], Awaitable[ShardedSource]]) -> None:
        """Search libraries.

        Args:
            now: as they are now.
            opened: gives them as they are when it is called; raises `StoreError` where that cannot be seen.
        """
        self.state = now.state
        """A hash of what could be found when the request came."""
        self._opened = opened

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give at most `limit` passages, best first.

        Raises:
            SourceError: an index is damaged, or the store fails.
        """
        try:
            source = await self._opened()
        except StoreError as error:
            raise SourceError(error.hint) from error
        return await source.search(request)
