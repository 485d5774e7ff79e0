"""Takes addresses apart that strangers wrote: `urllib.parse` raises for some (`http://[bad`), nothing here does."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

NO_URL: Final = SplitResult("", "", "", "", "")
"""The parts of what cannot be an address."""


def split_url(url: str) -> SplitResult:
    """The parts of an address; all are empty where it cannot be one."""
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port  # both are read, and refused, only at their first use
    except ValueError:
        return NO_URL
    return parts


def host_of(url: str) -> str:
    """The host in lower case, without port; empty where there is none."""
    return split_url(url).hostname or ""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, which no other can reach under that name."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
