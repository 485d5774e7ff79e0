"""The guard against server-side request forgery: which URLs may be fetched, and where a connection may go.

Two checks. `Guard.url` reads a URL, before each request and at each redirect. `GuardedBackend` looks the name up,
checks every address and connects to one of those very addresses: neither a second look-up (rebinding) nor a redirect,
a cache or a mistake in the first check can lead round it. TLS and the Host header keep the name.
"""

import asyncio
import re
import socket
import ssl
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final, cast

import httpcore2
import httpx2

from agent.sources.pages.errors import PageError

CLOSED_V4: Final = tuple(
    IPv4Network(net)
    for net in (
        "0.0.0.0/8",  # this network; Linux connects 0.0.0.0 to itself
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier NAT; Alibaba's metadata service
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local; most metadata services
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata service
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
UNICAST_V6: Final = IPv6Network("2000::/3")
CLOSED_V6: Final = tuple(
    IPv6Network(net)
    for net in (
        "2001::/23",  # Teredo (an IPv4 address inside), ORCHID, benchmarking
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",
    )
)
NAT64: Final = IPv6Network("64:ff9b::/96")
"""The well-known prefix, which a network without IPv4 gives for public names; 64:ff9b:1::/48 is for local use only."""
ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})
METADATA: Final = frozenset(
    ip_address(ip)
    for ip in (
        "169.254.169.254",  # AWS, Azure, Google Cloud, OpenStack, …
        "169.254.170.2",  # AWS containers
        "169.254.170.23",
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure's wire server: a public address
        "192.0.0.192",  # Oracle
        "fd00:ec2::254",  # AWS
        "fd20:ce::254",  # Google Cloud
        "fd00:42::42",  # Scaleway
    )
)

MAX_URL_CHARS: Final = 2_000
PORTS: Final = frozenset({80, 443})
MAX_ADDRESSES: Final = 16
"""A name with more is refused: who would need them?"""
TRIED_ADDRESSES: Final = 3
CLOSED_NAMES: Final = frozenset(
    {
        "localhost",
        "localdomain",
        "local",
        "internal",  # metadata.google.internal and every name inside a cloud
        "intranet",
        "lan",
        "corp",
        "home",
        "private",
        "home.arpa",
        "onion",
    }
)
"""Names that mean this machine or this network; whatever ends in one of them is refused without a look-up."""

_NEVER: Final = frozenset({"Cc", "Cs", "Zl", "Zp", "Zs"})
"""Unicode categories: control characters, lone surrogates, and spaces of each kind."""
_SCHEME: Final = re.compile(r"(https?)://([^/?#]*)", re.IGNORECASE)
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Allow = Callable[[str, int], bool]
"""Whether an address and port may be connected to."""


async def look_up(host: str, port: int) -> list[str]:
    """Give every address of a name, in the system's order, without blocking the loop."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def allow_public(address: str, port: int) -> bool:
    return is_public(address)


class Guard:
    """What may be fetched."""

    def __init__(
        self, *, ports: Iterable[int] = PORTS, allow: Allow = allow_public, resolve: Resolve = look_up
    ) -> None:
        """Set the rules.

        Args:
            ports: that a URL may name or mean.
            allow: which addresses may be connected to; another rule than the default is for tests.
            resolve: the look-up; every address that it gives is checked.
        """
        self._ports = frozenset(ports)
        self._allow = allow
        self._resolve = resolve

    def url(self, text: str) -> httpx2.URL:
        """Read a URL that may be fetched; its fragment is dropped.

        Raises:
            PageError: it may not be.
        """
        if len(text) > MAX_URL_CHARS:
            raise _refused("its URL is too long")
        if "\\" in text or any(unicodedata.category(c) in _NEVER for c in text):
            raise _refused("its URL has a backslash, a space or a control character")
        found = _SCHEME.match(text)
        if not found:
            raise _refused("its URL is not http or https")
        authority = found[2]
        if "@" in authority or "%" in authority:
            raise _refused("its URL hides its host")
        if unicodedata.normalize("NFKC", authority) != authority or any(
            unicodedata.category(c) == "Cf" for c in authority
        ):
            raise _refused("its host is written in look-alike characters")
        try:
            url = httpx2.URL(text).copy_with(fragment=None)
        except (httpx2.InvalidURL, ValueError) as error:
            raise _refused("its URL cannot be read") from error
        host = url.raw_host.decode("ascii")
        if not authority.isascii() and "xn--" not in host:
            raise _refused("its host is written in look-alike characters")
        port = {"https": 443}.get(url.scheme, 80) if url.port is None else url.port
        if url.userinfo or url.scheme not in {"http", "https"}:
            raise _refused("its URL hides its host")
        self._check_host(host, port, is_v6=authority.startswith("["))
        return url

    def redirect(self, url: httpx2.URL, location: str) -> httpx2.URL:
        """Read where a page sends us: checked like any URL, and never from https back to http.

        Raises:
            PageError: it sends us where we do not go.
        """
        if "\\" in location or not location.isprintable():
            raise _refused("it redirects with a backslash or a control character")
        try:
            target = str(url.join(location))
        except (httpx2.InvalidURL, ValueError) as error:
            raise _refused("it redirects to a URL that cannot be read") from error
        try:
            checked = self.url(target)
        except PageError as error:
            raise _refused(f"it redirects to a forbidden address: {error}") from error
        if url.scheme == "https" and checked.scheme == "http":
            raise _refused("it redirects from https to http")
        return checked

    async def addresses(self, host: str, port: int) -> list[str]:
        """Look a host up: the addresses that may be connected to, or none at all where one of them may not be.

        Raises:
            PageError: it may not be connected to, or it has no address.
        """
        self._check_host(host, port, is_v6=":" in host)
        literal = _literal(host)
        if literal:
            return [literal]
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise PageError(f"{host} has no address", kind="unreachable") from error
        if not found:
            raise PageError(f"{host} has no address", kind="unreachable")
        if len(found) > MAX_ADDRESSES or not all(self._allow(address, port) for address in found):
            raise _refused(f"{host} has an address outside the public internet")
        return list(found)

    def _check_host(self, host: str, port: int, *, is_v6: bool) -> None:
        if port not in self._ports:
            raise _refused(f"port {port} is not allowed")
        name = host.removesuffix(".")
        literal = _literal(name)
        if literal:
            if not self._allow(literal, port):
                raise _refused("its host is an address outside the public internet")
            return
        labels = name.split(".")
        if is_v6 or _NUMBER.fullmatch(labels[-1]):
            raise _refused("its host is an address in an unusual spelling")
        if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
            raise _refused("its host is not a valid host name")
        if len(labels) < 2 or any(".".join(labels[at:]) in CLOSED_NAMES for at in range(len(labels))):
            raise _refused("its host is a name of a local network")


def _refused(why: str) -> PageError:
    return PageError(why, kind="refused")


def _literal(host: str) -> str:
    """Give an address back that has its one usual spelling; empty for names and for anything else."""
    try:
        return str(IPv6Address(host)) if ":" in host else str(IPv4Address(host))
    except AddressValueError:
        return ""


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses only: the one place through which a page's bytes come in."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._inner = cast(httpcore2.AsyncNetworkBackend, cast(Any, httpcore2.AnyIOBackend)())  # has two definitions

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Look the host up, check all of its addresses, and connect to the first of these that answers."""
        clock = asyncio.get_running_loop().time
        end = clock() + (60.0 if timeout is None else timeout)
        try:
            async with asyncio.timeout_at(end):
                addresses = (await self._guard.addresses(host, port))[:TRIED_ADDRESSES]
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"the look-up of {host} took too long") from error
        left = len(addresses)
        while True:
            share = max(0.0, end - clock()) / left
            try:
                return await self._inner.connect_tcp(addresses[-left], port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                left -= 1
                if not left:
                    raise

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: a page never lives behind a socket on this machine."""
        raise _refused("it lives behind a unix socket")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A pool of guarded connections. It knows no proxy, no cookies, no redirects and no environment."""

    def __init__(self, guard: Guard, *, connections: int = 20, tls: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls or httpx2.create_ssl_context(trust_env=False),
            max_connections=connections,
            keepalive_expiry=5.0,
            network_backend=GuardedBackend(guard),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; a redirect comes back as what it is.

        Raises:
            PageError: the guard refused.
            httpx2.TransportError: the connection failed.
        """
        url = self._guard.url(str(request.url))
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=dict(request.extensions),
        )
        with _as_httpx2():
            got = await self._pool.handle_async_request(sent)
        return httpx2.Response(status_code=got.status, headers=got.headers, stream=_Body(got.stream))

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx2():
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


@contextmanager
def _as_httpx2() -> Generator[None]:
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise httpx2.TimeoutException(str(error)) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as error:
        raise httpx2.TransportError(str(error)) from error


def is_public(address: str) -> bool:
    """Say whether an address in its usual spelling may be connected to.

    Python's `is_global` differs between patch releases and knows nothing of the metadata services that clouds keep on
    public addresses, so what is closed stands here (IANA's special-purpose registries, RFC 6890 and its successors).

    An IPv6 address that carries an IPv4 address counts as that one; those with a scope id are never public.
    """
    if "%" in address:
        return False
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        inside = ip.ipv4_mapped
        if inside is None and ip in NAT64:
            inside = _last_32_bits(ip)
        if inside is None:
            return _is_public_v6(ip)
        ip = inside
    return _is_public_v4(ip)


def _is_public_v4(ip: IPv4Address) -> bool:
    return ip not in METADATA and ip.is_global and not any(ip in net for net in CLOSED_V4)


def _is_public_v6(ip: IPv6Address) -> bool:
    if ip in METADATA or ip not in UNICAST_V6 or not ip.is_global or any(ip in net for net in CLOSED_V6):
        return False
    return (int(ip) >> 32) & 0xFFFF_FFFF not in ISATAP or _is_public_v4(_last_32_bits(ip))


def _last_32_bits(ip: IPv6Address) -> IPv4Address:
    return IPv4Address(int(ip) & 0xFFFF_FFFF)
