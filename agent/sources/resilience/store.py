"""Where answers are kept between searches: a folder (SQLite), Redis by its URL, or memory. It only knows bytes.

A store that is broken (full disk, damaged file, Redis gone) holds nothing and takes nothing, is said once in the log,
and is left alone for a while: a search never fails because of it, and never waits for it longer than a moment.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol, TypeVar

from agent.outbound.urls import split_url
from agent.sources.resilience.folder_store import FolderStore

MAX_BYTES: Final = 256 << 20
"""Of the entries in a folder; what was kept first is dropped first. SQLite's logs beside them take up to 32 MB more.
Redis has its own bound (`maxmemory`)."""
MAX_ENTRIES: Final = 10_000
"""In memory."""
SECONDS: Final = 0.5
"""One look-up or one entry."""
OPENING_SECONDS: Final = 5.0
"""The first one, which also imports what it needs and makes the folder."""
REST_SECONDS: Final = 30.0
"""A store that failed is left alone for so long."""
MEMORY: Final = "memory:"

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class OpenStore(Protocol):
    """A place that is open."""

    async def get(self, key: str, /) -> object:
        """What is under a key, whatever it is; None: nothing."""
        ...

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        """Keep something."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


class AnswerStore:
    """Bytes by key, for a time. It is opened at its first use, and no input or output runs on the event loop."""

    def __init__(self, where: str, *, max_bytes: int = MAX_BYTES) -> None:
        """Keep entries at `where`; see `open_store`."""
        self._where = where
        self._max_bytes = max_bytes
        self._cache: OpenStore | None = None
        self._opening = threading.Lock()
        self._rest_until = 0.0
        self._said = False
        self._closed = False

    async def get(self, key: str, *, within: float = math.inf) -> bytes | None:
        """What is kept under a key; None where nothing is, or the store is broken or takes over `within` seconds."""

        async def get(cache: OpenStore) -> bytes | None:
            found: object = await cache.get(key)
            return found if isinstance(found, bytes) else None

        return await self._careful(get, within)

    async def put(self, key: str, value: bytes, *, seconds: float, within: float = math.inf) -> None:
        """Keep `value` for so long, unless the store is broken or takes over `within` seconds."""

        async def put(cache: OpenStore) -> None:
            await cache.put(key, value, seconds=seconds)

        await self._careful(put, within)

    async def aclose(self) -> None:
        """Let go of files and connections; from now on the store is empty."""
        self._closed = True
        cache, self._cache = self._cache, None
        if cache is not None:
            try:
                await cache.close()
            except Exception as error:  # noqa: BLE001  # cashews raises what its backend raises
                self._broke(str(error))

    async def _careful(self, use: Callable[[OpenStore], Awaitable[_T]], left: float) -> _T | None:
        now = asyncio.get_running_loop().time()
        if self._closed or now < self._rest_until or not left:
            return None
        allowed = SECONDS if self._cache or self._said else OPENING_SECONDS
        scope = asyncio.timeout(min(allowed, left))
        try:
            async with scope:
                return await use(self._cache or await self._open())
        except Exception as error:  # noqa: BLE001  # cashews raises what its backend raises
            if not scope.expired() or left >= allowed:
                self._rest_until = now + REST_SECONDS
                self._broke(str(error.__cause__ or error) or f"no answer in {allowed:g} s")
            return None

    def _broke(self, why: str) -> None:
        if not self._said:
            self._said = True
            _log.warning("the query cache %s cannot be used (%s); searches continue without it", self._shown, why)

    @property
    def _shown(self) -> str:
        """Without a password."""
        if "://" not in self._where:
            return self._where
        parts = split_url(self._where)
        return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"

    async def _open(self) -> OpenStore:
        return self._opened() if self._where == MEMORY else await asyncio.to_thread(self._opened)

    def _opened(self) -> OpenStore:
        """The place; a folder is made, and nothing that any place holds is ever unpickled."""
        with self._opening:
            if self._cache is None:
                folder = self._where != MEMORY and "://" not in self._where
                self._cache = _Folder(Path(self._where), self._max_bytes) if folder else _Cashews(self._where)
            return self._cache


class _Folder:
    """A folder, used in threads."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._store = FolderStore(folder, max_bytes=max_bytes, busy_seconds=SECONDS)

    async def get(self, key: str, /) -> object:
        return await asyncio.to_thread(self._store.get, key)

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        await asyncio.to_thread(self._store.put, key, value, seconds=seconds)

    async def close(self) -> None:
        await asyncio.to_thread(self._store.close)


class _Cashews:
    """Memory or Redis, with bytes alone."""

    def __init__(self, where: str) -> None:
        from cashews import Cache

        self._cache: Cache = Cache()
        if where == MEMORY:
            self._cache.setup("mem://", size=MAX_ENTRIES, check_interval=0, pickle_type="null", check_repr=False)
        else:
            self._cache.setup(
                where, suppress=False, socket_connect_timeout=SECONDS, pickle_type="null", check_repr=False
            )

    async def get(self, key: str, /) -> object:
        return await self._cache.get(key)

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        await self._cache.set(key, value, expire=seconds)

    async def close(self) -> None:
        await self._cache.close()


def open_store(where: str | Path, *, max_bytes: int = MAX_BYTES) -> AnswerStore:
    """A store in a folder, at a redis:// or rediss:// URL, or `memory:`. Nothing is opened before its first use.

    Raises:
        ValueError: a URL of another kind.
    """
    text = str(where)
    if "://" in text and not text.startswith(("redis://", "rediss://")):
        raise ValueError(f"{text!r} cannot hold the query cache; name a folder, a redis:// URL, or memory:")
    return AnswerStore(text, max_bytes=max_bytes)
