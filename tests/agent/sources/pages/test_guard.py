"""Attacks on the fetcher: each form is refused, and none of them opens a connection."""

import asyncio
from collections.abc import Sequence

import httpcore2
import httpx2
import pytest

from agent.sources.pages.errors import PageError
from agent.sources.pages.fetch import Fetcher
from agent.sources.pages.guard import Guard, GuardedBackend, GuardedTransport
from tests.agent.sources.pages.attacks import ATTACKS, LOOPBACK_NAMES
from tests.agent.sources.pages.site import Names, Reply, connections, guard_for, serving


def attempt(url: str, *, names: Names | None = None) -> tuple[PageError, list[object], int]:
    """Fetch with a listener on loopback: the refusal, what was connected to, and what the listener saw."""

    async def run() -> tuple[PageError, list[object], int]:
        async with asyncio.timeout(10), serving({"/": Reply("secret")}) as trap:
            names_ = names or Names({"site.example.org": [["93.184.216.34"]]})
            fetcher = Fetcher(guard=Guard(ports=(80, 443, trap.port), resolve=names_))
            try:
                with connections() as opened, pytest.raises(PageError) as refused:
                    await fetcher.page(url.replace("{port}", str(trap.port)))
            finally:
                await fetcher.aclose()
            return refused.value, list(opened), trap.connections

    return asyncio.run(run())


def test_there_are_more_than_enough_attacks():
    assert len(ATTACKS) + len(LOOPBACK_NAMES) > 100


@pytest.mark.parametrize("url", ATTACKS.values(), ids=ATTACKS.keys())
def test_an_attack_is_refused_and_opens_no_connection(url: str):
    names = Names()  # a look-up that reaches this server finds nothing, and is counted
    refusal, opened, seen = attempt(url, names=names)
    assert refusal.kind == "refused"
    assert not opened
    assert not seen
    assert not names.requests


@pytest.mark.parametrize("addresses", LOOPBACK_NAMES.values(), ids=LOOPBACK_NAMES.keys())
def test_a_name_for_an_inner_address_is_refused_and_opens_no_connection(addresses: Sequence[str]):
    refusal, opened, seen = attempt("http://evil.example.org:{port}/", names=Names({"evil.example.org": [addresses]}))
    # It is robots.txt that is requested first, and its refusal counts for the whole site.
    assert refusal.kind in {"refused", "robots"}
    assert not opened
    assert not seen


@pytest.mark.parametrize(
    "location", [*ATTACKS.values(), "//127.0.0.1:{port}/", "\\\\127.0.0.1\\", "http://evil.example.org/"]
)
def test_a_redirect_to_an_attack_is_refused_and_opens_no_second_connection(location: str):
    async def run() -> None:
        async with asyncio.timeout(10), serving({"/": Reply("secret")}) as trap, serving() as front:
            target = location.replace("{port}", str(trap.port))
            target = "".join(c if ord(c) < 256 and c not in "\r\n\0" else f"%{ord(c) & 255:02x}" for c in target)
            front.pages["/"] = Reply(status=302, headers={"location": target or "http://"})
            names = Names({"site.example.org": [["127.0.0.1"]], "evil.example.org": [["10.0.0.1"]]})
            fetcher = Fetcher(guard=guard_for(front, names=names, ports=[trap.port]), robots=False)
            try:
                with connections() as opened, pytest.raises(PageError) as refused:
                    await fetcher.page(front.url("/"))
            finally:
                await fetcher.aclose()
            assert refused.value.kind in {"refused", "status"}  # two forms mean a page of the site itself: a 404
            assert set(opened) == {("127.0.0.1", front.port)}
            assert not trap.connections

    asyncio.run(run())


def test_a_hash_ends_the_host_whatever_follows_it():
    assert str(Guard().url("http://site.example.org#@127.0.0.1/")) == "http://site.example.org"


@pytest.mark.parametrize(
    "text",
    [
        "http://example.org/",
        "https://example.org:443/a?b=c@d",
        "http://93.184.216.34/",
        "http://[2606:4700::1111]/",
        "https://bücher.example.org/",
        "https://xn--bcher-kva.example.org/ü",
        "https://fa.example.org/wiki/می\u200cشود",
        "https://a_b.c-d.example.org./",
        "HTTPS://EXAMPLE.ORG/",
    ],
)
def test_an_honest_url_passes(text: str):
    url = Guard().url(text)
    assert url.scheme in {"http", "https"}
    assert url.raw_host


def test_a_name_that_is_rebound_is_refused_at_the_next_connection():
    async def run() -> None:
        async with asyncio.timeout(10), serving({"/": Reply("<p>" + "Public words. " * 40)}) as site, serving() as trap:
            names = Names({"site.example.org": [["127.0.0.1"], ["127.0.0.2"]]})
            fetcher = Fetcher(guard=guard_for(site, names=names, ports=[trap.port]), robots=False)
            try:
                with connections() as opened:
                    await fetcher.page(site.url("/"))
                    with pytest.raises(PageError) as refused:
                        await fetcher.page(site.url("/"))
            finally:
                await fetcher.aclose()
            assert refused.value.kind == "refused"
            assert opened == [("127.0.0.1", site.port)]

    asyncio.run(run())


def test_the_address_that_was_checked_is_the_one_that_is_connected_to():
    """One look-up for one connection: a name server that answers the next question otherwise gets no chance."""

    async def run() -> None:
        async with asyncio.timeout(10), serving({"/": Reply("here")}) as site:
            names = Names({"site.example.org": [["127.0.0.1"], ["10.0.0.1"]]})
            transport = GuardedTransport(guard_for(site, names=names))
            with connections() as opened:
                response = await transport.handle_async_request(httpx2.Request("GET", site.url("/")))
                assert await response.aread() == b"here"
                await response.aclose()
            await transport.aclose()
            assert names.requests == ["site.example.org"]
            assert opened == [("127.0.0.1", site.port)]
            assert f"Host: site.example.org:{site.port}" in site.heads[0]

    asyncio.run(run())


def test_tls_asks_for_the_name_and_not_for_the_address():
    async def run() -> bytes:
        hello: list[bytes] = []

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            hello.append(await reader.read(4096))
            writer.close()

        async with asyncio.timeout(10):
            server = await asyncio.start_server(listen, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            guard = Guard(
                ports=[port], allow=lambda address, port: True, resolve=Names({"site.example.org": [["127.0.0.1"]]})
            )
            transport = GuardedTransport(guard)
            with pytest.raises(httpx2.TransportError):
                await transport.handle_async_request(httpx2.Request("GET", f"https://site.example.org:{port}/"))
            await transport.aclose()
            server.close()
            return hello[0]

    hello = asyncio.run(run())
    assert hello.startswith(b"\x16\x03")
    assert b"site.example.org" in hello


def test_the_connection_refuses_by_itself_what_no_other_gate_has_seen():
    async def run() -> None:
        backend = GuardedBackend(Guard(resolve=Names({"evil.example.org": [["127.0.0.1"]]})))
        with connections() as opened:
            for host in ("127.0.0.1", "::1", "localhost", "evil.example.org", "2130706433", "::ffff:10.0.0.1"):
                with pytest.raises(PageError):
                    await backend.connect_tcp(host, 80)
            with pytest.raises(PageError):
                await backend.connect_tcp("93.184.216.34", 22)
            with pytest.raises(PageError):
                await backend.connect_unix_socket("/var/run/docker.sock")
        assert not opened

    asyncio.run(run())


def test_the_transport_refuses_a_request_that_was_not_checked():
    async def run() -> None:
        names = Names({"site.example.org": [["93.184.216.34"]]})
        transport = GuardedTransport(Guard(resolve=names))
        with connections() as opened:
            for url in ("http://127.0.0.1/", "http://user:password@site.example.org/", "http://site.example.org:22/"):
                with pytest.raises(PageError):
                    await transport.handle_async_request(httpx2.Request("GET", url))
        await transport.aclose()
        assert not opened
        assert not names.requests

    asyncio.run(run())


def test_refusals_use_up_no_connection():
    async def run() -> None:
        async with asyncio.timeout(10), serving({"/": Reply("here")}) as site:
            names = Names({"site.example.org": [["127.0.0.1"]], "evil.example.org": [["10.0.0.1"]]})
            transport = GuardedTransport(guard_for(site, names=names), connections=2)
            for _ in range(5):
                with pytest.raises(PageError):
                    await transport.handle_async_request(httpx2.Request("GET", "http://evil.example.org/"))
            response = await transport.handle_async_request(httpx2.Request("GET", site.url("/")))
            assert await response.aread() == b"here"
            await transport.aclose()

    asyncio.run(run())


def test_another_address_is_tried_where_the_first_one_does_not_answer():
    async def run() -> None:
        async with asyncio.timeout(10), serving({"/": Reply("here")}) as site:
            guard = Guard(
                ports=[site.port],
                allow=lambda address, port: address in {"127.0.0.1", "127.0.0.3"},
                resolve=Names({"site.example.org": [["127.0.0.3", "127.0.0.1"]]}),
            )
            with connections() as opened:
                await (await GuardedBackend(guard).connect_tcp("site.example.org", site.port, 5)).aclose()
            assert [address for address, _ in opened] == ["127.0.0.3", "127.0.0.1"]

    asyncio.run(run())


def test_a_look_up_that_hangs_ends_in_time():
    async def hang(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async def run() -> None:
        with pytest.raises(httpcore2.ConnectTimeout):
            await GuardedBackend(Guard(resolve=hang)).connect_tcp("site.example.org", 80, 0.01)

    asyncio.run(run())


def test_https_is_never_left_for_http():
    guard = Guard()
    url = guard.url("https://example.org/a")
    assert str(guard.redirect(url, "/b")) == "https://example.org/b"
    assert str(guard.redirect(guard.url("http://example.org/"), "https://example.org/")) == "https://example.org/"
    with pytest.raises(PageError, match="https to http"):
        guard.redirect(url, "http://example.org/a")
