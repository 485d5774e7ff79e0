"""Which addresses belong to the public internet. Pure: nothing is looked up and nothing is connected here.

Python's `is_global` differs between patch releases and knows nothing of the metadata services that clouds keep on
public addresses, so what is closed stands here (IANA's special-purpose registries, RFC 6890 and its successors).
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

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


def is_public(address: str) -> bool:
    """Say whether an address in its usual spelling may be connected to.

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
