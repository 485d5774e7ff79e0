from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.evidence import web_address
from agent.outbound.urls import NO_URL, host_of, is_loopback, split_url
from agent.sources.corpus.documents import StoredPassage
from agent.sources.corpus.source import allows
from agent.sources.filters import ReadFilters
from agent.sources.live.reading import on_wanted_host, url_of
from train.evaluation.cited import address
from train.evaluation.datasets.open_domain import page_title
from train.evaluation.gold import plain_url

odd = st.text(alphabet="htps:/[]@.%#?\\ \t\n\u2100\u212a0129abz-_\x00", max_size=40)
addresses = odd | odd.map(lambda rest: f"http://{rest}") | st.text(max_size=30)


@given(addresses)
def test_no_text_makes_an_address_raise(url: str) -> None:
    for read in (split_url, host_of, web_address, url_of, address, plain_url, page_title):
        read(url)
    on_wanted_host(url, ReadFilters(sites=("example.org",)))
    allows(StoredPassage(id="a", text="t", url=url), ReadFilters(sites=("example.org",)), today=date(2026, 1, 1))


@pytest.mark.parametrize("url", ["http://[bad", "http://x:99999999/", "http://[::1", "http://\u2100.example/"])
def test_what_cannot_be_an_address_has_no_parts(url: str) -> None:
    assert split_url(url) == NO_URL
    assert host_of(url) == ""
    assert plain_url(url) == url


def test_a_good_address_has_its_host_in_lower_case() -> None:
    assert host_of("https://User:pw@WWW.Example.org:8443/a?b#c") == "www.example.org"


def test_loopback_is_known_in_all_its_spellings() -> None:
    assert [h for h in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost") if not is_loopback(h)] == []
    assert [h for h in ("0.0.0.0", "::", "10.0.0.1", "example.org", "") if is_loopback(h)] == []
