"""robots.txt: read once a day, obeyed, and no way round the guard."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from agent.sources.pages.errors import PageError
from agent.sources.pages.fetch import Fetcher
from agent.sources.pages.get import Getter
from agent.sources.pages.guard import GuardedTransport
from agent.sources.pages.robots import (
    KEEP_FAILURE_SECONDS,
    KEEP_SECONDS,
    LONGEST_WAIT_SECONDS,
    MAX_BYTES,
    MAX_WORK,
    Robots,
    work,
)
from tests.agent.sources.extract.pages import ARTICLE
from tests.agent.sources.pages.site import Names, Reply, Site, guard_for, serving


class Clock:
    """Time that passes only where a task sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Asker:
    """Asks whether a page may be fetched."""

    def __init__(self, site: Site, names: Names | None = None) -> None:
        self.site = site
        self.clock = Clock()
        self.guard = guard_for(site, names=names)
        self.transport = GuardedTransport(self.guard)
        self.robots = Robots(Getter(self.guard, self.transport), clock=self.clock, sleep=self.clock.sleep)

    async def may(self, path: str) -> str:
        """Give the reason, or nothing where it may."""
        try:
            await self.robots.check(self.guard.url(self.site.url(path)))
        except PageError as error:
            return str(error) if error.kind == "robots" else error.kind
        return ""


def ask(robots: Reply, use: Callable[[Asker], Awaitable[None]], *, names: Names | None = None) -> Site:
    async def bounded() -> Site:
        async with asyncio.timeout(20), serving({"/robots.txt": robots}) as site:
            asker = Asker(site, names)
            try:
                await use(asker)
            finally:
                await asker.transport.aclose()
            return site

    return asyncio.run(bounded())


def plain(text: str) -> Reply:
    return Reply(text, type="text/plain")


RULES = """
User-agent: *
Disallow: /private/
Allow: /private/but-this
Disallow: /*.cgi$

User-agent: Cairn-Search
Disallow: /not-for-cairn
"""


def test_rules_for_us_count_before_rules_for_all():
    async def use(asker: Asker) -> None:
        assert await asker.may("/not-for-cairn/a") == "its robots.txt forbids it"
        assert await asker.may("/private/a") == ""

    assert ask(plain(RULES), use).requests == ["/robots.txt"]


def test_rules_for_all_are_obeyed():
    async def use(asker: Asker) -> None:
        assert [
            bool(await asker.may(path)) for path in ("/private/a", "/private/but-this", "/a.cgi", "/a.cgi?b", "/")
        ] == [
            True,
            False,
            True,
            False,
            False,
        ]

    ask(plain(RULES.split("User-agent: Cairn")[0]), use)


def test_rules_behind_a_byte_order_mark_are_obeyed():
    async def use(asker: Asker) -> None:
        assert await asker.may("/a") == "its robots.txt forbids it"

    ask(plain("\ufeffUser-agent: *\r\nDisallow: /\r\n"), use)


def test_a_site_is_read_once_a_day_also_by_many_at_once():
    async def use(asker: Asker) -> None:
        await asyncio.gather(*(asker.may(f"/{n}") for n in range(10)))
        asker.clock.now += KEEP_SECONDS - 1
        await asker.may("/")
        assert asker.site.requests == ["/robots.txt"]
        asker.clock.now += 2
        await asker.may("/")
        assert asker.site.requests == ["/robots.txt"] * 2

    ask(plain(RULES), use)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_where_there_are_no_rules_all_is_allowed(status: int):
    async def use(asker: Asker) -> None:
        assert await asker.may("/private/") == ""

    ask(Reply("Disallow: /", status), use)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_fails_is_left_alone_for_a_while(status: int):
    async def use(asker: Asker) -> None:
        assert await asker.may("/") == "its robots.txt cannot be fetched"
        asker.site.pages["/robots.txt"] = Reply(status=404)
        assert await asker.may("/") == "its robots.txt cannot be fetched"
        asker.clock.now += KEEP_FAILURE_SECONDS + 1
        assert await asker.may("/") == ""

    ask(Reply("", status), use)


def test_a_robots_txt_that_redirects_inwards_closes_its_site():
    async def use(asker: Asker) -> None:
        assert await asker.may("/") == "its robots.txt cannot be fetched"

    ask(Reply(status=302, headers={"location": "http://127.0.0.1/latest/meta-data"}), use)


def test_a_robots_txt_that_has_moved_is_found():
    async def use(asker: Asker) -> None:
        asker.site.pages["/rules"] = plain("User-agent: *\nDisallow: /")
        assert await asker.may("/") == "its robots.txt forbids it"

    ask(Reply(status=301, headers={"location": "/rules"}), use)


def test_what_follows_the_bound_is_not_read():
    async def use(asker: Asker) -> None:
        assert await asker.may("/early/") == "its robots.txt forbids it"
        assert await asker.may("/late/") == ""

    text = "User-agent: *\nDisallow: /early/\n" + "# filler\n" * (MAX_BYTES // 9 + 1) + "Disallow: /late/\n"
    ask(plain(text), use)


def test_a_pause_is_kept_if_it_is_short():
    async def use(asker: Asker) -> None:
        assert [await asker.may("/a") for _ in range(3)] == ["", "", ""]
        assert asker.clock.slept == [2.0, 2.0]

    ask(plain("User-agent: *\nCrawl-delay: 2"), use)


def test_a_page_is_left_out_where_the_pause_is_too_long_to_wait():
    async def use(asker: Asker) -> None:
        assert await asker.may("/a") == ""
        assert await asker.may("/b") == "its robots.txt asks for longer pauses"
        asker.clock.now += 60 - LONGEST_WAIT_SECONDS
        assert await asker.may("/b") == ""
        assert asker.clock.slept == [LONGEST_WAIT_SECONDS]

    ask(plain("User-agent: *\nCrawl-delay: 60"), use)


@pytest.mark.parametrize(
    "body", [b"\xff\xfe\0\0", b"<!doctype html><p>Not found", b"\0" * 1000, b"User-agent\nDisallow"]
)
def test_what_is_no_robots_txt_forbids_nothing(body: bytes):
    async def use(asker: Asker) -> None:
        assert await asker.may("/a") == ""

    ask(Reply(body), use)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"User-agent: a{n}\n" for n in range(20_000)),
        "".join(f"User-agent: a{n}\n" for n in range(2_000)) + "Disallow: /a\n" * 20_000,
        "".join(f"User-agent: a{n}\nSitemap: /b\n" for n in range(2_000)) + "Disallow: /a\n" * 10_000,
        "".join(f"user agent: a{n}\n" for n in range(20_000)),
    ],
)
def test_rules_that_are_made_to_be_slow_close_their_site_at_once(text: str):
    async def use(asker: Asker) -> None:
        start = time.perf_counter()
        assert await asker.may("/") == "its robots.txt cannot be fetched"
        assert time.perf_counter() - start < 2

    assert work(text) > MAX_WORK
    ask(plain(text), use)


def test_an_honest_long_robots_txt_is_read():
    text = "".join(f"User-agent: bot{n}\n" + "Disallow: /a\n" * 50 for n in range(200))
    assert work(text) < MAX_WORK


def test_a_page_that_robots_txt_forbids_is_not_requested():
    async def bounded() -> None:
        pages = {"/robots.txt": plain("User-agent: *\nDisallow: /closed"), "/closed/page": Reply(ARTICLE)}
        pages["/open"] = Reply(status=302, headers={"location": "/closed/page"})
        async with asyncio.timeout(20), serving(pages) as site:
            fetcher = Fetcher(guard=guard_for(site))
            try:
                for path in ("/closed/page", "/open"):
                    with pytest.raises(PageError, match=r"its robots\.txt forbids it"):
                        await fetcher.page(site.url(path))
            finally:
                await fetcher.aclose()
            assert site.requests == ["/robots.txt", "/open"]

    asyncio.run(bounded())
