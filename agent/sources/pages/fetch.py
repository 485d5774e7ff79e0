"""One page from a search result, as text: guard, robots.txt, a bounded GET, a cache, extraction in a worker process.

For pages of the open web only; endpoints that the operator set have their own client (`agent.sources.http`).
"""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import httpx2

from agent.files.own import NotPrivate, private_file, private_folder
from agent.sources.extract.pool import ExtractPool
from agent.sources.extract.text import Extracted, ExtractError, Kind
from agent.sources.pages.errors import PageError
from agent.sources.pages.get import MAX_BYTES, Getter, Got
from agent.sources.pages.guard import Guard, GuardedTransport
from agent.sources.pages.robots import Robots

_log: Final = logging.getLogger(__name__)
SECONDS: Final = 10.0
"""For one whole page: waiting for its turn, robots.txt, redirects, the body and its extraction."""
CONCURRENCY: Final = 8
PER_HOST: Final = 2
WHY_CHARS: Final = 100
"""Of a reason: a parser that a page has taken over may have written it."""
CACHE_BYTES: Final = 256 * 1024 * 1024
TYPES: Final[dict[str, Kind]] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/plain": "text",
    "text/markdown": "text",
    "text/x-markdown": "text",
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
}


@dataclass(frozen=True)
class WebPage:
    """A page that was read."""

    url: str
    """Its last address, after redirects."""
    text: str
    title: str = ""
    date: str = ""
    language: str = ""
    how: str = ""
    """Which extractor found the text."""
    cached: bool = False


class Fetcher:
    """Reads pages, a few at the same time. One for a whole event loop; its owner closes it there."""

    def __init__(
        self,
        *,
        guard: Guard | None = None,
        workers: ExtractPool | None = None,
        cache: Path | None = None,
        robots: bool = True,
        seconds: float = SECONDS,
    ) -> None:
        """Open nothing yet: connections, processes and the cache begin with the first page.

        Args:
            guard: what may be fetched.
            workers: the processes that extract; closed with this.
            cache: the file in which answers are kept as long as they allow (RFC 9111); None: none are kept.
            robots: whether robots.txt is read first.
            seconds: for one whole page.
        """
        self._guard = guard or Guard()
        self._transport = _cached(GuardedTransport(self._guard, connections=2 * CONCURRENCY), cache)
        self._getter = Getter(self._guard, self._transport)
        self._robots = Robots(self._getter) if robots else None
        self._workers = workers or ExtractPool()
        self._seconds = seconds
        self._turns = asyncio.Semaphore(CONCURRENCY)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def page(self, url: str) -> WebPage:
        """Read a page.

        Raises:
            PageError: it could not be had; its text is a short reason.
        """
        try:
            async with asyncio.timeout(self._seconds):
                return await self._page(url)
        except PageError:
            raise
        except TimeoutError as error:
            raise PageError(f"it did not arrive in {self._seconds:g} s", kind="slow") from error
        except Exception as error:  # a stranger's server, a cache file, a parser: a page that fails fails alone
            raise PageError(f"it failed with {type(error).__name__}", kind="unreadable") from error

    async def _page(self, url: str) -> WebPage:
        got = await self._get(url)
        if got.status != 200:
            raise PageError(f"its server answered {got.status}", kind="status")
        found = await self._extract(got)
        return WebPage(str(got.url), found.text, found.title, found.date, found.language, found.how, got.cached)

    async def _get(self, url: str) -> Got:
        host = self._guard.url(url).host
        host_turns = self._hosts.get(host) or asyncio.Semaphore(PER_HOST)
        self._hosts[host] = host_turns
        async with host_turns, self._turns:
            return await self._getter.get(url, before=self._check_robots, types=frozenset(TYPES))

    async def _check_robots(self, url: httpx2.URL) -> None:
        if self._robots is not None:
            await self._robots.check(url)

    async def _extract(self, got: Got) -> Extracted:
        kind = kind_of(got.content_type, got.body)
        try:
            return await self._workers.page(got.body, kind=kind, charset=got.charset, url=str(got.url))
        except ExtractError as error:
            raise PageError(str(error)[:WHY_CHARS], kind="unreadable") from error

    async def aclose(self) -> None:
        """Close connections, processes and the cache; more than once does no harm."""
        await self._workers.aclose()
        await self._transport.aclose()


def kind_of(content_type: str, body: bytes) -> Kind:
    """Say what a body is: what it begins with counts more than what the server called it.

    Raises:
        PageError: it is no text at all.
    """
    start = body[:1024].lstrip(b"\xef\xbb\xbf\t\n\r ")
    if start.startswith(b"%PDF-"):
        return "pdf"
    declared = TYPES[content_type]
    is_wide = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if (b"\0" in start and not is_wide) or start.startswith(
        (b"PK\x03\x04", b"\x1f\x8b", b"\x89PNG", b"GIF8", b"\xff\xd8")
    ):
        raise PageError("it is not text, although its server says so", kind="type")
    looks_html = start[:200].lower().startswith((b"<!doctype html", b"<html", b"<head", b"<body"))
    if looks_html:
        return "html"
    if declared == "pdf":
        raise PageError("it is not a PDF, although its server says so", kind="type")
    return declared


def _cached(transport: httpx2.AsyncBaseTransport, file: Path | None) -> httpx2.AsyncBaseTransport:
    if file is None:
        return transport
    try:
        private_folder(file.parent)
        private_file(file)
    except (OSError, NotPrivate) as error:
        _log.warning("pages are not kept: %s", error)
        return transport
    from hishel import AsyncSqliteStorage, CacheOptions
    from hishel.httpx2 import AsyncCacheTransport

    storage = AsyncSqliteStorage(database_path=file, max_size=CACHE_BYTES, max_stream_size=MAX_BYTES)
    return AsyncCacheTransport(transport, storage, CacheOptions(shared=True))
