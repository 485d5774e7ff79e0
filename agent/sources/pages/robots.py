"""What a site's robots.txt lets us fetch (RFC 9309), read with protego and kept for a day.

It comes through the same guard as the pages. Missing is allowed; a server that fails, or that cannot be reached, is
left alone for a while.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

import httpx2
from protego import Protego

from agent.sources.pages.errors import PageError
from agent.sources.pages.get import Getter

AGENT: Final = "cairn-search"
"""The product token: the name by which a robots.txt may speak to us."""
MAX_BYTES: Final = 512 * 1024
"""RFC 9309 asks for at least 500 KiB; what follows is not read."""
KEEP_SECONDS: Final = 24 * 3600.0
KEEP_FAILURE_SECONDS: Final = 300.0
MAX_SITES: Final = 1_000
MAX_WORK: Final = 200_000
"""Rules times the agents that they are for: more is an attack on their reader."""
LONGEST_WAIT_SECONDS: Final = 5.0
"""A Crawl-delay is waited for if it ends within so long; else the page is not fetched this time."""

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


@dataclass
class _Site:
    rules: Protego | None
    """None: nothing may be fetched for now."""
    until: float
    next_fetch: float = 0.0


class Robots:
    """The rules of the sites that were met lately."""

    def __init__(self, getter: Getter, *, clock: Clock | None = None, sleep: Sleep = asyncio.sleep) -> None:
        """Remember where rules are fetched through; `clock` and `sleep` are for tests."""
        self._getter = getter
        self._clock = clock or _loop_time
        self._sleep = sleep
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def check(self, url: httpx2.URL) -> None:
        """Wait until a page may be fetched.

        Raises:
            PageError: the site does not want it (`robots`).
        """
        site = await self._site(url)
        if site.rules is None:
            raise PageError("its robots.txt cannot be fetched", kind="robots")
        if not await asyncio.to_thread(site.rules.can_fetch, str(url), AGENT):
            raise PageError("its robots.txt forbids it", kind="robots")
        delay = site.rules.crawl_delay(AGENT) or 0.0
        now = self._clock()
        wait = site.next_fetch - now
        if wait > LONGEST_WAIT_SECONDS:
            raise PageError("its robots.txt asks for longer pauses", kind="robots")
        site.next_fetch = max(now, site.next_fetch) + delay
        if wait > 0:
            await self._sleep(wait)

    async def _site(self, url: httpx2.URL) -> _Site:
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        lock = self._locks.get(origin) or asyncio.Lock()
        self._locks[origin] = lock
        async with lock:
            site = self._sites.get(origin)
            if site is None or site.until <= self._clock():
                rules, keep = await self._fetch(origin)
                site = _Site(rules, self._clock() + keep, site.next_fetch if site else 0.0)
                self._sites[origin] = site
                while len(self._sites) > MAX_SITES:
                    self._sites.popitem(last=False)
            self._sites.move_to_end(origin)
            return site

    async def _fetch(self, origin: str) -> tuple[Protego | None, float]:
        try:
            got = await self._getter.get(f"{origin}/robots.txt", cut_bytes=MAX_BYTES)
        except PageError:
            return None, KEEP_FAILURE_SECONDS
        if 400 <= got.status < 500 and got.status != 429:
            return Protego.parse(""), KEEP_SECONDS
        if got.status != 200:
            return None, KEEP_FAILURE_SECONDS
        text = got.body.decode("utf-8-sig", errors="replace")
        if work(text) > MAX_WORK:
            return None, KEEP_SECONDS
        return await asyncio.to_thread(Protego.parse, text), KEEP_SECONDS


def work(text: str) -> int:
    """Count the rules of a robots.txt, each once for every agent that it is for."""
    total = agents = 0
    ruled = False
    for line in text.splitlines():
        field = line.strip().lower()
        if field.startswith("user"):
            agents = 1 if ruled else agents + 1
            ruled = False
            total += agents  # each agent is looked for among those before it
        elif field and not field.startswith(("#", "site", "host")):  # these end no group
            ruled = True
            total += agents
    return total


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
