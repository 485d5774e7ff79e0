"""Which addresses belong to the public internet."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sources.pages.guard import is_public


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
