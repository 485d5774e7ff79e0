"""Attacks on the fetcher: each form is refused, and none of them opens a connection."""

import asyncio
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

import httpcore2
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sources.pages.addresses import is_public
from agent.sources.pages.errors import PageError
from agent.sources.pages.fetch import Fetcher
from agent.sources.pages.guard import Guard, GuardedBackend, GuardedTransport
from tests.agent.sources.pages.site import Names, Reply, connections, guard_for, serving

HOSTS = {
    "loopback": "127.0.0.1",
    "loopback, its other end": "127.255.255.254",
    "loopback, short": "127.1",
    "loopback, three parts": "127.0.1",
    "loopback, one decimal number": "2130706433",
    "loopback, one octal number": "017700000001",
    "loopback, one hexadecimal number": "0x7f000001",
    "loopback, a hexadecimal number that overflows": "0x100000007f000001",
    "loopback, octal parts": "0177.0.0.1",
    "loopback, hexadecimal parts": "0x7f.0x0.0x0.0x1",
    "loopback, mixed parts": "0x7f.1",
    "loopback, padded parts": "127.000.000.001",
    "loopback, with the dot of a name": "127.0.0.1.",
    "loopback, full-width digits": "１２７.0.0.1",
    "loopback, circled digits": "①②⑦.⓪.⓪.①",
    "loopback, ideographic full stops": "127。0。0。1",
    "loopback, percent-encoded": "%31%32%37.0.0.1",
    "a public address, ideographic full stops": "8。8。8。8",
    "a number too many": "1.2.3.4.5",
    "a name that ends in a number": "site.example.0x7f",
    "this network": "0.0.0.0",
    "this network, short": "0",
    "private 10": "10.0.0.1",
    "private 172": "172.16.0.1",
    "private 192": "192.168.1.1",
    "carrier NAT": "100.64.0.1",
    "benchmarking": "198.18.0.1",
    "multicast": "224.0.0.1",
    "broadcast": "255.255.255.255",
    "reserved": "240.0.0.1",
    "metadata, link-local": "169.254.169.254",
    "metadata, link-local, one number": "2852039166",
    "metadata, containers": "169.254.170.2",
    "metadata, Alibaba": "100.100.100.200",
    "metadata, Azure": "168.63.129.16",
    "metadata, Oracle": "192.0.0.192",
    "metadata, IPv6": "[fd00:ec2::254]",
    "metadata, Google": "metadata.google.internal",
    "metadata, Google, with a dot": "metadata.google.internal.",
    "metadata, upper case": "METADATA.GOOGLE.INTERNAL",
    "metadata, a bare name": "metadata",
    "IPv6 loopback": "[::1]",
    "IPv6 loopback, written out": "[0:0:0:0:0:0:0:1]",
    "IPv6, unspecified": "[::]",
    "IPv6, link-local": "[fe80::1]",
    "IPv6, link-local with a scope": "[fe80::1%25eth0]",
    "IPv6, public with a scope": "[2606:4700::1%25lo]",
    "IPv6, site-local": "[fec0::1]",
    "IPv6, unique local": "[fc00::1]",
    "IPv6, multicast": "[ff02::1]",
    "IPv6, documentation": "[2001:db8::1]",
    "IPv4 in IPv6, mapped": "[::ffff:127.0.0.1]",
    "IPv4 in IPv6, mapped, hexadecimal": "[::ffff:7f00:1]",
    "IPv4 in IPv6, mapped metadata": "[::ffff:a9fe:a9fe]",
    "IPv4 in IPv6, compatible": "[::127.0.0.1]",
    "IPv4 in IPv6, translated": "[::ffff:0:127.0.0.1]",
    "IPv4 in IPv6, 6to4": "[2002:7f00:1::]",
    "IPv4 in IPv6, 6to4 of metadata": "[2002:a9fe:a9fe::1]",
    "IPv4 in IPv6, NAT64": "[64:ff9b::7f00:1]",
    "IPv4 in IPv6, NAT64 of metadata": "[64:ff9b::169.254.169.254]",
    "IPv4 in IPv6, local NAT64": "[64:ff9b:1::808:808]",
    "IPv4 in IPv6, Teredo": "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
    "IPv4 in IPv6, ISATAP": "[2606:4700::5efe:10.0.0.1]",
    "IPv4 in IPv6, ISATAP with the global bit": "[2606:4700::200:5efe:127.0.0.1]",
    "localhost": "localhost",
    "localhost, with a dot": "localhost.",
    "localhost, mixed case": "LocalHost",
    "localhost, a name below": "anything.localhost",
    "localhost, circled letters": "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "localhost, a soft hyphen": "local\u00adhost",
    "localhost, a zero-width space": "local\u200bhost",
    "a bare name": "intranet",
    "mDNS": "printer.local",
    "a cloud's inside": "db.internal",
    "a home's inside": "router.home.arpa",
    "no host": "",
    "only a dot": ".",
    "empty labels": "site..example.org",
    "a name with a slash look-alike": "site.example.org⁄.evil.example",
    "a name with an account-of sign": "℀.example.org",
}
URLS = {
    "userinfo before loopback": "http://site.example.org@127.0.0.1:{port}/",
    "userinfo before a name": "http://127.0.0.1@site.example.org:{port}/",
    "userinfo with a password": "http://user:password@site.example.org:{port}/",
    "empty userinfo": "http://@site.example.org:{port}/",
    "two at signs": "http://a@b@127.0.0.1:{port}/",
    "an encoded at sign": "http://site.example.org%40127.0.0.1:{port}/",
    "a backslash before an at sign": "http://site.example.org\\@127.0.0.1:{port}/",
    "backslashes for slashes": "http:\\\\127.0.0.1:{port}\\",
    "a backslash in the path": "http://site.example.org:{port}/\\127.0.0.1",
    "a tab in the host": "http://127.0.\t0.1:{port}/",
    "a newline in the host": "http://127.0.0.1\n:{port}/",
    "a newline in the path": "http://site.example.org:{port}/a\r\nHost: 127.0.0.1",
    "a leading space": " http://127.0.0.1:{port}/",
    "a trailing space": "http://127.0.0.1:{port}/ ",
    "a null in the host": "http://127.0.0.1\0.example.org:{port}/",
    "three slashes": "http:///127.0.0.1:{port}/",
    "no slashes": "http:127.0.0.1:{port}/",
    "no scheme": "//127.0.0.1:{port}/",
    "a file": "file:///etc/passwd",
    "a file on a host": "file://127.0.0.1/etc/passwd",
    "gopher": "gopher://127.0.0.1:{port}/_GET",
    "ftp": "ftp://127.0.0.1:{port}/",
    "dict": "dict://127.0.0.1:{port}/info",
    "data": "data:text/html,<p>here</p>",
    "a unix socket as a scheme": "unix:///var/run/docker.sock",
    "a unix socket behind http": "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
    "a unix socket as a host": "http://unix:/var/run/docker.sock:/info",
    "a web socket": "ws://127.0.0.1:{port}/",
    "SSH's port": "http://site.example.org:22/",
    "Redis' port": "http://site.example.org:6379/",
    "port zero": "http://site.example.org:0/",
    "a port too high": "http://site.example.org:65616/",
    "a negative port": "http://site.example.org:-1/",
    "two ports": "http://127.0.0.1:{port}:80/",
    "nothing": "",
    "far too long": "http://site.example.org:{port}/" + "a" * 5_000,
}
ATTACKS = {name: f"http://{host}:{{port}}/" for name, host in HOSTS.items()} | URLS
LOOPBACK_NAMES = {
    "loopback": ["127.0.0.1"],
    "IPv6 loopback": ["::1"],
    "metadata": ["169.254.169.254"],
    "a private network": ["10.1.2.3"],
    "a public and a private address": ["93.184.216.34", "192.168.0.1"],
    "a private and a public address": ["::1", "2606:4700::1111"],
    "a mapped address": ["::ffff:127.0.0.1"],
    "NAT64 of a private address": ["64:ff9b::a00:1"],
    "a scope": ["fe80::1%lo"],
    "no address in truth": ["localhost"],
    "more addresses than anyone needs": ["93.184.216.34"] * 40,
}


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
    assert not names.asked


@pytest.mark.parametrize("addresses", LOOPBACK_NAMES.values(), ids=LOOPBACK_NAMES.keys())
def test_a_name_for_an_inner_address_is_refused_and_opens_no_connection(addresses: Sequence[str]):
    refusal, opened, seen = attempt("http://evil.example.org:{port}/", names=Names({"evil.example.org": [addresses]}))
    # It is robots.txt that is asked for first, and its refusal counts for the whole site.
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
            assert names.asked == ["site.example.org"]
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


def test_the_transport_refuses_a_request_that_nobody_checked():
    async def run() -> None:
        names = Names({"site.example.org": [["93.184.216.34"]]})
        transport = GuardedTransport(Guard(resolve=names))
        with connections() as opened:
            for url in ("http://127.0.0.1/", "http://user:password@site.example.org/", "http://site.example.org:22/"):
                with pytest.raises(PageError):
                    await transport.handle_async_request(httpx2.Request("GET", url))
        await transport.aclose()
        assert not opened
        assert not names.asked

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


@given(st.integers(0, 2**32 - 1), st.sampled_from(["::ffff:0:0", "64:ff9b::"]))
def test_an_ipv4_address_is_judged_alike_wherever_it_stands(number: int, prefix: str):
    inside = IPv4Address(number)
    outside = IPv6Address(int(IPv6Address(prefix)) | number)
    assert is_public(str(outside)) == is_public(str(inside))


@given(st.ip_addresses(v=4))
def test_what_python_calls_private_is_never_public(address: IPv4Address):
    assert not (is_public(str(address)) and (address.is_private or address.is_multicast or address.is_reserved))


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_that_carries_another_one_is_never_public(address: IPv6Address):
    if is_public(str(address)) and address.ipv4_mapped is None:
        assert address.is_global
        assert address.sixtofour is None
        assert address.teredo is None


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_public_addresses_are_public(address: str):
    assert is_public(address)


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "8.8.8.8 ", "2606:4700::1%eth0", "08.8.8.8", "1.2.3.4.5"])
def test_what_is_no_plain_address_is_not_public(text: str):
    assert not is_public(text)
