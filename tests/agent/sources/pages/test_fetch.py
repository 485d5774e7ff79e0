"""Whole pages over real HTTP from a site that behaves, and from many that do not."""

import asyncio
import gzip
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from agent.sources.extract.pool import ExtractPool
from agent.sources.pages.errors import PageError, PageErrorKind
from agent.sources.pages.fetch import CONCURRENCY, PER_HOST, Fetcher, WebPage, kind_of
from agent.sources.pages.get import MAX_BYTES
from tests.agent.sources.extract.pages import ADVERT, ARTICLE, STORY, pdf
from tests.agent.sources.pages.site import Handler, Names, Reply, Site, guard_for, serving

Use = Callable[[Fetcher, Site], Awaitable[None]]


def run(
    pages: Mapping[str, Reply | Handler],
    use: Use,
    *,
    seconds: float = 10.0,
    names: Names | None = None,
    cache: Path | None = None,
) -> Site:
    """Fetch from a site, everything bounded in time."""

    async def bounded() -> Site:
        async with asyncio.timeout(60), serving(pages) as site:
            guard = guard_for(site, names=names)
            fetcher = Fetcher(guard=guard, workers=ExtractPool(count=1), cache=cache, robots=False, seconds=seconds)
            try:
                await use(fetcher, site)
            finally:
                await fetcher.aclose()
            return site

    return asyncio.run(bounded())


def read(reply: Reply | Handler, *, path: str = "/page", seconds: float = 10.0) -> WebPage:
    found: list[WebPage] = []

    async def use(fetcher: Fetcher, site: Site) -> None:
        found.append(await fetcher.page(site.url(path)))

    run({path: reply}, use, seconds=seconds)
    return found[0]


def read_all(replies: Mapping[str, Reply | Handler]) -> dict[str, WebPage]:
    """Each by its path, with one process that extracts."""
    found: dict[str, WebPage] = {}

    async def use(fetcher: Fetcher, site: Site) -> None:
        for path in replies:
            found[path] = await fetcher.page(site.url(path))

    run(replies, use)
    return found


def fails(reply: Reply | Handler, *, seconds: float = 10.0) -> tuple[PageErrorKind, str]:
    found: list[PageError] = []

    async def use(fetcher: Fetcher, site: Site) -> None:
        with pytest.raises(PageError) as failed:
            await fetcher.page(site.url("/page"))
        found.append(failed.value)

    run({"/page": reply}, use, seconds=seconds)
    return found[0].kind, str(found[0])


def streams(head: str, chunks: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> Handler:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
        await chunks(writer)

    return write


def test_an_article_is_read():
    page = read(Reply(ARTICLE))
    assert all(paragraph in page.text for paragraph in STORY)
    assert ADVERT not in page.text
    assert (page.title, page.date, page.language) == ("The lighthouse on Skerry Point", "2021-06-14", "en")
    assert page.url.endswith("/page")


def test_each_kind_of_page_is_read():
    kinds = {
        "/plain": Reply(STORY[0], type="text/plain"),
        "/markdown": Reply("# A heading\n\n" + STORY[0], type="text/markdown; charset=utf-8"),
        "/xhtml": Reply(ARTICLE, type="application/xhtml+xml"),
        "/pdf": Reply(pdf(*STORY), type="application/pdf"),
        "/gzip": Reply(gzip.compress(ARTICLE.encode()), headers={"content-encoding": "gzip"}),
        "/deflate": Reply(zlib.compress(ARTICLE.encode()), headers={"content-encoding": "deflate"}),
    }
    assert [path for path, page in read_all(kinds).items() if STORY[0] not in page.text] == []


def test_what_a_page_is_counts_more_than_what_its_server_says():
    said = {
        "/a-pdf-as-html": Reply(pdf(*STORY), type="text/html"),
        "/html-as-a-pdf": Reply(ARTICLE, type="application/pdf"),
        "/html-as-plain-text": Reply(ARTICLE, type="text/plain"),
        "/a-charset-that-is-none": Reply(ARTICLE, type="TEXT/HTML ; CHARSET=nonsense"),
        "/a-wrong-charset": Reply(ARTICLE.replace("Maud", "Åsa").encode("latin-1"), type="text/html; charset=utf-8"),
    }
    for path, page in read_all(said).items():
        assert STORY[1] in page.text, path
        assert "Maud" in page.text or "Åsa" in page.text, path
        assert ADVERT not in page.text, path


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"\x89PNG\r\n\x1a\n\0\0", type="image/png"),
        Reply(b"\x89PNG\r\n\x1a\n\0\0", type="text/html"),
        Reply(b"PK\x03\x04\x14\0", type="text/plain"),
        Reply(b"\x7fELF\x02\x01\x01\0", type="text/html"),
        Reply('{"a": 1}', type="application/json"),
        Reply("nothing of a PDF", type="application/pdf"),
        Reply(ARTICLE, type="application/octet-stream"),
        Reply(ARTICLE, type=None),
        Reply(ARTICLE, headers={"content-encoding": "br"}),
        Reply(ARTICLE, headers={"content-encoding": "x-of-our-own"}),
        Reply(gzip.compress(gzip.compress(ARTICLE.encode())), headers={"content-encoding": "gzip, gzip"}),
        Reply(ARTICLE, headers={"content-encoding": "gzip"}),
    ],
)
def test_what_holds_no_text_for_us_is_not_read(reply: Reply):
    assert fails(reply)[0] == "type"


@pytest.mark.parametrize("status", [204, 206, 301, 304, 403, 404, 410, 429, 500, 503])
def test_any_answer_but_200_is_none(status: int):
    kind, why = fails(Reply(ARTICLE, status))
    assert kind == "status" or status == 204
    assert str(status) in why or status == 204


def test_an_empty_page_is_no_page():
    assert fails(Reply(""))[0] == "unreadable"


def test_a_gzip_bomb_is_stopped_at_the_bound():
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    bomb = b"".join(packer.compress(b"\0" * 1_000_000) for _ in range(100)) + packer.flush()
    assert len(bomb) < 400_000
    start = time.perf_counter()
    kind, why = fails(Reply(bomb, headers={"content-encoding": "gzip"}))
    assert (kind, why) == ("size", "it is longer than 5 MB")
    assert time.perf_counter() - start < 6


def test_an_endless_body_is_stopped_at_the_bound():
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            sent += 0x10000
            await writer.drain()

    kind, _ = fails(streams("content-type: text/html\r\ntransfer-encoding: chunked", endless))
    assert kind == "size"
    assert sent < 4 * MAX_BYTES


def test_a_length_that_is_too_long_is_believed_before_anything_is_read():
    async def nothing(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    assert fails(streams(f"content-type: text/html\r\ncontent-length: {MAX_BYTES + 1}", nothing))[0] == "size"


@pytest.mark.parametrize("head", ["content-type: text/html\r\ncontent-length: 4000", None], ids=["body", "head"])
def test_a_server_that_drips_ends_with_the_page_s_time(head: str | None):
    async def drip(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    start = time.perf_counter()
    kind, why = fails(drip if head is None else streams(head, drip), seconds=0.3)
    assert (kind, why) == ("slow", "it did not arrive in 0.3 s")
    assert time.perf_counter() - start < 6


def test_a_connection_that_breaks_in_the_middle_is_no_page():
    async def some(writer: asyncio.StreamWriter) -> None:
        writer.write(b"<p>half")
        await writer.drain()
        writer.transport.abort()

    assert fails(streams("content-type: text/html\r\ncontent-length: 4000", some))[0] == "unreachable"


@pytest.mark.parametrize("garbage", [b"", b"\0\0\0\0\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"x" * 300_000])
def test_a_server_that_does_not_speak_http_is_unreachable(garbage: bytes):
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(garbage)

    assert fails(write)[0] == "unreachable"


def test_a_name_without_an_address_is_unreachable():
    async def use(fetcher: Fetcher, site: Site) -> None:
        with pytest.raises(PageError) as failed:
            await fetcher.page(site.url("/", host="nowhere.example.org"))
        assert failed.value.kind == "unreachable"

    run({}, use)


def test_three_redirects_are_followed_and_a_fourth_is_not():
    pages: dict[str, Reply | Handler] = {
        f"/{n}": Reply(status=(301, 302, 303, 307)[n], headers={"location": f"{n + 1}"}) for n in range(4)
    }
    pages["/4"] = Reply(ARTICLE)

    async def use(fetcher: Fetcher, site: Site) -> None:
        assert (await fetcher.page(site.url("/1"))).url == site.url("/4")
        with pytest.raises(PageError, match="more than 3 times"):
            await fetcher.page(site.url("/0"))

    site = run(pages, use)
    assert site.requests == ["/1", "/2", "/3", "/4", "/0", "/1", "/2", "/3"]


def test_requests_say_who_asks_and_carry_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / ".netrc").write_text("machine site.example.org login me password secret", encoding="utf-8")
    for name, value in {
        "HTTP_PROXY": "http://127.0.0.1:1",
        "http_proxy": "http://127.0.0.1:1",
        "ALL_PROXY": "http://127.0.0.1:1",
        "HOME": str(tmp_path),
        "NETRC": str(tmp_path / ".netrc"),
    }.items():
        monkeypatch.setenv(name, value)
    cookie = {"set-cookie": "session=1; Path=/; Domain=site.example.org"}

    async def use(fetcher: Fetcher, site: Site) -> None:
        await fetcher.page(site.url("/first"))
        await fetcher.page(site.url("/page"))

    pages = {
        "/first": Reply(status=302, headers={"location": "/page", **cookie}),
        "/page": Reply(ARTICLE, headers=cookie),
    }
    site = run(pages, use)
    assert len(site.heads) == 3
    for head in site.heads:
        fields = {line.partition(":")[0].lower() for line in head.splitlines()[1:] if line}
        assert fields == {"host", "user-agent", "accept", "accept-encoding", "accept-language"}
        assert "cairn-search/" in head


@pytest.mark.parametrize(("hosts", "most"), [(1, PER_HOST), (12, CONCURRENCY)])
def test_no_more_pages_at_once_than_one_host_and_all_of_them_may_have(hosts: int, most: int):
    arrived = 0
    full = asyncio.Event()

    async def together(writer: asyncio.StreamWriter) -> None:
        nonlocal arrived
        arrived += 1
        if arrived >= most:
            full.set()
        await full.wait()
        await asyncio.sleep(0.02)  # time for one too many to come
        writer.write(Reply(ARTICLE).wire())

    names = Names({f"h{n}.example.org": [["127.0.0.1"]] for n in range(hosts)})

    async def use(fetcher: Fetcher, site: Site) -> None:
        urls = [site.url("/page", host=f"h{n % hosts}.example.org") for n in range(12)]
        await asyncio.gather(*(fetcher.page(url) for url in urls))

    assert run({"/page": together}, use, names=names).most_open == most


def test_a_page_is_kept_as_long_as_it_allows(tmp_path: Path):
    fresh = Reply(ARTICLE, headers={"cache-control": "max-age=60"})
    never = Reply(ARTICLE, headers={"cache-control": "no-store"})

    async def use(fetcher: Fetcher, site: Site) -> None:
        first = await fetcher.page(site.url("/fresh"))
        again = await fetcher.page(site.url("/fresh"))
        assert (first.cached, again.cached) == (False, True)
        assert first.text == again.text
        for _ in range(2):
            assert not (await fetcher.page(site.url("/never"))).cached

    site = run({"/fresh": fresh, "/never": never}, use, cache=tmp_path / "pages.db")
    assert site.requests == ["/fresh", "/never", "/never"]


def test_a_page_that_may_have_changed_is_requested_again_and_need_not_be_sent_again(tmp_path: Path):
    tagged = {"etag": '"one"', "cache-control": "max-age=0"}

    async def use(fetcher: Fetcher, site: Site) -> None:
        site.pages["/page"] = Reply(ARTICLE, headers=tagged)
        first = await fetcher.page(site.url("/page"))
        site.pages["/page"] = Reply(status=304, headers=tagged)
        assert (await fetcher.page(site.url("/page"))).text == first.text

    site = run({}, use, cache=tmp_path / "pages.db")
    assert 'If-None-Match: "one"'.lower() in site.heads[1].lower()


def test_a_page_that_is_too_long_is_not_kept(tmp_path: Path):
    long = Reply(b"x" * (MAX_BYTES + 1), headers={"cache-control": "max-age=60"})

    async def use(fetcher: Fetcher, site: Site) -> None:
        for _ in range(2):
            with pytest.raises(PageError):
                await fetcher.page(site.url("/page"))

    assert run({"/page": long}, use, cache=tmp_path / "pages.db").requests == ["/page"] * 2


def test_a_page_is_read_also_where_the_cache_cannot_be_used(tmp_path: Path):
    (tmp_path / "pages.db").write_bytes(b"this is no database" * 100)

    async def use(fetcher: Fetcher, site: Site) -> None:
        assert STORY[0] in (await fetcher.page(site.url("/page"))).text

    run({"/page": Reply(ARTICLE)}, use, cache=tmp_path / "pages.db")


@pytest.mark.parametrize("cache", [True, False])
def test_a_fetcher_that_was_never_used_closes(cache: bool, tmp_path: Path):
    async def use(fetcher: Fetcher, site: Site) -> None:
        await fetcher.aclose()

    assert not run({}, use, cache=tmp_path / "pages.db" if cache else None).requests


def test_what_a_body_begins_with_says_what_it_is():
    assert kind_of("text/html", "no tags".encode("utf-16")) == "html"
    assert kind_of("text/plain", b"\xef\xbb\xbf <!DOCTYPE HTML>") == "html"
    assert kind_of("text/html", b"\n%PDF-1.7") == "pdf"
    assert kind_of("text/plain", b"") == "text"
