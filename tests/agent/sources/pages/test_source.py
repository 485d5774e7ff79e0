"""Hits whose pages are read: the part that fits the query becomes the passage, and whatever fails stays a snippet."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, get_args

import pytest

from agent.errors import Failure, SourceError
from agent.evidence import Passage
from agent.plan import Filter
from agent.sources.base import Closable, Paid, SearchRequest, SearchResult, Source, ask, close_sources, credits_of
from agent.sources.extract.pool import ExtractPool
from agent.sources.pages.errors import PageError, PageErrorKind
from agent.sources.pages.fetch import Fetcher, WebPage
from agent.sources.pages.source import WithPages
from tests.agent.sources.extract.pages import ARTICLE, STORY, pdf
from tests.agent.sources.pages.site import Handler, Reply, Site, guard_for, serving
from tests.virtual_clock import run as run_virtually

QUERY = "When did the lighthouse on Skerry Point get a paraffin burner?"
SNIPPET = "A snippet of the search engine …"


class Found:
    """A source that finds what it is given, and remembers its requests."""

    def __init__(self, found: Sequence[Passage] | SearchResult, *, seconds: float = 0.0) -> None:
        self.found = found if isinstance(found, SearchResult) else SearchResult(tuple(found))
        self.seconds = seconds
        self.requests: list[tuple[str, int, Sequence[Filter]]] = []
        self.closed = 0

    async def search(self, request: SearchRequest) -> SearchResult:
        self.requests.append((request.query, request.limit, request.filters))
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return self.found

    async def aclose(self) -> None:
        self.closed += 1


def hit(url: str, *, text: str = SNIPPET, title: str = "Its title", date: str = "") -> Passage:
    return Passage(id=url, source="web", title=title, text=text, url=url, date=date, score=0.5, rank=1)


def run(pages: Mapping[str, Reply | Handler], use: Callable[[Site, Fetcher], Awaitable[None]]) -> Site:
    async def bounded() -> Site:
        async with asyncio.timeout(60), serving(pages) as site:
            fetcher = Fetcher(guard=guard_for(site), workers=ExtractPool(count=1))
            try:
                await use(site, fetcher)
            finally:
                await fetcher.aclose()
            return site

    return asyncio.run(bounded())


def test_the_part_of_the_page_that_fits_replaces_the_snippet():
    long = ARTICLE.replace(STORY[3], "The path to the tower is steep and wet. " * 200 + STORY[3])

    async def use(site: Site, fetcher: Fetcher) -> None:
        found = await WithPages(Found([hit(site.url("/page"))]), fetcher).search(SearchRequest(QUERY, limit=5))
        assert STORY[1] in found.passages[0].text
        assert STORY[3] not in found.passages[0].text
        assert len(found.passages[0].text) <= 1_500
        assert found.passages[0].model_copy(update={"text": SNIPPET}) == hit(site.url("/page"), date="2021-06-14")
        assert not found.notes

    run({"/page": Reply(long)}, use)


def test_what_the_source_says_of_title_and_date_counts_more_than_the_page():
    async def use(site: Site, fetcher: Fetcher) -> None:
        hits = [hit(site.url("/page"), date="1999-01-01"), hit(site.url("/page?"), title="")]
        found = await WithPages(Found(hits), fetcher).search(SearchRequest(QUERY, limit=5))
        assert (found.passages[0].title, found.passages[0].date) == ("Its title", "1999-01-01")
        assert (found.passages[1].title, found.passages[1].date) == ("The lighthouse on Skerry Point", "2021-06-14")

    run({"/page": Reply(ARTICLE), "/page?": Reply(ARTICLE)}, use)


def test_only_the_first_pages_are_read_each_once_and_all_at_the_same_time():
    waiting = 0
    together = asyncio.Event()

    async def page(writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 2:
            together.set()
        await together.wait()
        writer.write(Reply(ARTICLE).wire())

    async def use(site: Site, fetcher: Fetcher) -> None:
        a, b, c = (hit(site.url(path)) for path in ("/a", "/b", "/c"))
        nowhere = hit("")
        found = await WithPages(Found([a, nowhere, a, b, c]), fetcher, pages=2).search(SearchRequest(QUERY, limit=5))
        assert [STORY[1] in passage.text for passage in found.passages] == [True, False, False, True, False]
        assert [passage.url for passage in found.passages] == [a.url, "", a.url, b.url, c.url]

    site = run({"/a": page, "/b": page, "/c": page}, use)
    assert sorted(site.requests) == ["/a", "/b", "/robots.txt"]


def test_a_page_that_fails_stays_a_snippet_and_a_note_says_why():
    async def hang(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    urls: list[str] = []

    async def use(site: Site, fetcher: Fetcher) -> None:
        await fetcher.page(site.url("/page"))  # its process is there: the time below is for the pages
        urls[:] = [
            site.url("/page"),
            "http://169.254.169.254/latest/meta-data",
            site.url("/gone"),
            site.url("/closed"),
            site.url("/picture"),
            site.url("/hangs"),
            site.url("/empty"),
            "file:///etc/passwd",
        ]
        hits = tuple(hit(url) for url in urls)
        source = Found(SearchResult(hits, notes=("the source says this",), backend="tavily"))
        found = await WithPages(source, fetcher, pages=10, seconds=1.5).search(SearchRequest(QUERY, limit=10))
        assert [passage.text == SNIPPET for passage in found.passages] == [False] + [True] * 7
        assert found.notes == (
            "the source says this",
            "hit 2 stayed a snippet: its host is an address outside the public internet",
            "hit 3 stayed a snippet: its server answered 404",
            "hit 4 stayed a snippet: its robots.txt forbids it",
            "hit 5 stayed a snippet: it is image/png, not a text that can be read",
            "hit 6 stayed a snippet: its page did not arrive in time",
            "hit 7 stayed a snippet: it holds no readable text",
        )
        assert found.passages[7].url == "", "an address of no web page is left out where a passage is made"

    pages: Mapping[str, Reply | Handler] = {
        "/robots.txt": Reply("User-agent: *\nDisallow: /closed"),
        "/page": Reply(ARTICLE),
        "/picture": Reply(b"\x89PNG", type="image/png"),
        "/hangs": hang,
        "/empty": Reply("<html><body></body></html>"),
    }
    run(pages, use)


class NoPage(Fetcher):
    """Every page fails so; without an error it never comes."""

    def __init__(self, error: PageError | None) -> None:
        self.error = error

    async def page(self, url: str) -> WebPage:
        if self.error is not None:
            raise self.error
        await asyncio.Event().wait()
        raise AssertionError("no one sets this event")


@pytest.mark.parametrize("kind", [*get_args(PageErrorKind), "late"])
def test_a_result_is_incomplete_where_a_page_was_slow_or_unreachable(kind: Any):
    fetcher = NoPage(None if kind == "late" else PageError("so it is", kind=kind))
    source = WithPages(Found([hit("https://example.org/1")]), fetcher)
    found = run_virtually(source.search(SearchRequest(QUERY, limit=5)))
    assert found.passages[0].text == SNIPPET
    assert found.incomplete == (kind in {"slow", "unreachable", "late"})


def test_a_result_that_was_incomplete_before_its_pages_were_read_stays_so():
    given = SearchResult((hit(""),), incomplete=True)
    assert run_virtually(WithPages(Found(given), NoPage(None)).search(SearchRequest(QUERY, limit=5))).incomplete


def test_what_the_source_says_of_its_search_is_kept():
    async def use(site: Site, fetcher: Fetcher) -> None:
        failures = (Failure(backend="serper", kind="quota", why="no credits"),)
        given = SearchResult(
            (hit(site.url("/page")),), backend="tavily", cached="fresh", credits=2.0, usd=0.01, failures=failures
        )
        found = await WithPages(Found(given), fetcher).search(SearchRequest(QUERY, limit=5))
        assert (found.backend, found.cached, found.credits, found.usd, found.failures) == (
            "tavily",
            "fresh",
            2.0,
            0.01,
            failures,
        )

    run({"/page": Reply(pdf(*STORY), type="application/pdf")}, use)


def test_the_source_gets_just_what_was_requested():
    async def use(site: Site, fetcher: Fetcher) -> None:
        source = Found([])
        filters = (Filter(name="lang", value="en"),)
        found = await WithPages(source, fetcher).search(SearchRequest(QUERY, limit=7, filters=filters))
        assert found.passages == ()
        assert source.requests == [(QUERY, 7, filters)]

    assert not run({}, use).requests


@pytest.mark.parametrize("slow", ["source", "page"])
def test_the_search_never_takes_longer_than_its_share(slow: str):
    async def hang(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def use(site: Site, fetcher: Fetcher) -> None:
        source = Found([hit(site.url("/page"))], seconds=0.3 if slow == "source" else 0.0)
        start = asyncio.get_running_loop().time()
        found = await WithPages(source, fetcher, seconds=0.2).search(SearchRequest(QUERY, limit=5))
        assert asyncio.get_running_loop().time() - start < 1
        assert found.passages[0].text == SNIPPET
        assert found.notes == ("hit 1 stayed a snippet: its page did not arrive in time",)

    assert run({"/page": hang}, use).requests[:1] == ([] if slow == "source" else ["/robots.txt"])


def test_a_caller_with_less_time_gets_the_snippets_in_that_time():
    async def hang(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def use(site: Site, fetcher: Fetcher) -> None:
        source = WithPages(Found([hit(site.url("/page"))]), fetcher, seconds=30)
        found = await ask(source, SearchRequest(QUERY, limit=5), seconds=0.3)
        assert found.passages[0].text == SNIPPET
        assert found.notes

    run({"/page": hang}, use)


def test_a_source_that_fails_fails_as_before():
    class Broken:
        async def search(self, request: SearchRequest) -> SearchResult:
            raise SourceError("no key", kind="auth")

    async def use(site: Site, fetcher: Fetcher) -> None:
        with pytest.raises(SourceError, match="no key"):
            await WithPages(Broken(), fetcher).search(SearchRequest(QUERY, limit=5))

    run({}, use)


def test_it_costs_what_its_source_costs_and_closes_what_it_holds():
    class Costly(Found):
        @property
        def credits_per_search(self) -> float:
            return 2.0

    async def use(site: Site, fetcher: Fetcher) -> None:
        inner = Costly([hit(site.url("/page"))])
        source: Source = WithPages(inner, fetcher)
        assert isinstance(source, Paid)
        assert isinstance(source, Closable)
        assert credits_of(source) == 2.0
        await source.search(SearchRequest(QUERY, limit=5))
        await close_sources([source, source])
        assert inner.closed == 1

    run({"/page": Reply(ARTICLE)}, use)
