"""Unverified answers are read into clean passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import SourceError
from agent.sources.filters import ReadFilters
from agent.sources.live.reading import (
    ResultRow,
    cost,
    number,
    object_of,
    on_wanted_host,
    passages,
    plain,
    rows_of,
    site_operators,
    url_of,
)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("Rain &amp; wind", "Rain & wind"),
        ("It&#x27;s <strong>here</strong>", "It's here"),
        ("one<br/>two", "one\ntwo"),
        ("a\u00a0 b\t c\r\n\n d", "a b c\nd"),
        ("List<String> and 1 < 2 > 0", "List<String> and 1 < 2 > 0"),
        ("&lt;b&gt; is a tag", "<b> is a tag"),
        ("nul\x00 and half a pair \ud800", "nul and half a pair"),
        ("&#0;&#xD800;x", "\ufffd\ufffdx"),
        (12, "12"),
        (None, ""),
        (True, ""),
        (["a"], ""),
    ],
)
def test_text_loses_its_markup_and_nothing_else(sent: object, read: str):
    assert plain(sent) == read


@given(st.text(alphabet=st.characters()))
def test_plain_text_can_always_be_written(text: str):
    plain(text).encode()


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("https://a.example/x?y=1", "https://a.example/x?y=1"),
        (" http://a.example ", "http://a.example"),
        ("HTTPS://A.example", "HTTPS://A.example"),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("//a.example", ""),
        ("/relative", ""),
        ("http://[bad", ""),
        ("http://a.example:99999/", ""),
        ("http://", ""),
        ("http://a.example/\nx", ""),
        (None, ""),
        (3, ""),
    ],
)
def test_only_urls_of_the_web_are_urls(sent: object, read: str):
    assert url_of(sent) == read


@pytest.mark.parametrize(
    ("url", "site", "fits"),
    [
        ("https://example.org/a", "example.org", True),
        ("https://EN.Example.org:8080/a", "example.org", True),
        ("https://notexample.org/a", "example.org", False),
        ("https://example.org.evil.com/", "example.org", False),
        ("https://example.org/blog/1", "example.org/blog/", True),
        ("https://example.org/shop", "example.org/blog", False),
        ("https://mit.edu/", ".edu", True),
        ("https://mit.edu/", "edu", True),
        ("https://mit.edu.example.com/", "edu", False),
        ("https://a.example.org/", "https://www.example.org/", True),
        ("", "example.org", False),
    ],
)
def test_a_site_is_a_host_with_its_subdomains_and_perhaps_a_path(url: str, site: str, fits: bool):
    assert on_wanted_host(url, ReadFilters(sites=(site,))) == fits
    assert on_wanted_host(url, ReadFilters(not_sites=(site,))) != fits


def test_hosts_that_an_api_did_not_filter_are_filtered_here():
    rows = [
        ResultRow("a", "x", "https://a.org/1"),
        ResultRow("b", "x", "https://b.org/1"),
        ResultRow("c", "x", "https://sub.a.org/2"),
    ]
    found = passages(rows, by="t", topic="web", wanted=ReadFilters(sites=("a.org",)), limit=5)
    assert [(p.title, p.rank) for p in found] == [("a", 1), ("c", 2)]
    found = passages(rows, by="t", topic="web", wanted=ReadFilters(not_sites=("a.org",)), limit=5)
    assert [p.title for p in found] == ["b"]


def test_every_passage_has_an_id_of_its_own_that_stays():
    rows = [
        ResultRow("a", "x", "https://a.org/"),
        ResultRow("b", "y", "https://a.org/"),
        ResultRow("c", "z"),
        ResultRow("c", "w"),
        ResultRow(),
    ]
    rows += rows  # what is stated twice is one passage
    once, again = (passages(rows, by="t", topic="news", wanted=ReadFilters(), limit=9) for _ in range(2))
    assert once == again
    assert len({p.id for p in once}) == len(once) == 4, "a row that says nothing is none"
    assert once[0].id == "https://a.org/"
    assert [p.rank for p in once] == [1, 2, 3, 4]
    assert {p.source for p in once} == {"news"}


def test_passages_are_bounded_in_number_and_size():
    rows = [ResultRow("t" * 1000, "x" * 100_000, f"https://a.org/{n}") for n in range(9)]
    found = passages(rows, by="t", topic="web", wanted=ReadFilters(), limit=2)
    assert [(p.id, len(p.title), len(p.text)) for p in found] == [(f"https://a.org/{n}", 500, 20_000) for n in (0, 1)]


def test_operators_hold_as_many_sites_as_there_is_room_for():
    wanted = ReadFilters(sites=("a.org", "b.org"), not_sites=("c.org", "d.org"))
    assert site_operators(wanted, room=200) == "(site:a.org OR site:b.org) -site:c.org -site:d.org"
    assert site_operators(wanted, room=42) == "(site:a.org OR site:b.org) -site:c.org"
    assert site_operators(wanted, room=5) == ""
    assert site_operators(ReadFilters(sites=("a.org",)), room=50) == "site:a.org"
    assert site_operators(ReadFilters(not_sites=("a.org",)), without="NOT site:", room=50) == "NOT site:a.org"


@given(st.lists(st.from_regex(r"[a-z]{1,20}\.org", fullmatch=True), max_size=8), st.integers(0, 120))
def test_operators_never_need_more_room(sites: list[str], room: int):
    half = len(sites) // 2
    assert len(site_operators(ReadFilters(sites=tuple(sites[:half]), not_sites=tuple(sites[half:])), room=room)) <= room


def test_an_answer_of_another_shape_is_a_parse_error():
    shapes: list[dict[str, object]] = [{"results": {}}, {"results": "x"}, {}]
    for data in shapes:
        with pytest.raises(SourceError) as caught:
            rows_of(data, "results", by="t", needed=True)
        assert caught.value.kind == "parse"
    assert rows_of({}, "organic", by="t") == []
    assert rows_of({"organic": [{"a": 1}, 2, None]}, "organic", by="t") == [{"a": 1}]
    with pytest.raises(SourceError):
        object_of([], by="t")


def test_a_cost_is_what_the_api_says_if_that_can_be():
    assert [cost(stated, otherwise=2.0) for stated in (1, 0, 1.5, None, "1", -1, True)] == [
        1.0,
        0.0,
        1.5,
        2.0,
        2.0,
        2.0,
        2.0,
    ]


def test_numbers_are_numbers():
    assert number(1) == 1.0
    assert [number(v) for v in (True, "1", None, float("nan"), float("inf"), 10**400)] == [None] * 6


@given(ANYTHING)
def test_nothing_that_json_can_say_breaks_the_readers(value: object):
    row = ResultRow(title=plain(value), text=plain(value), url=url_of(value), score=number(value) or 0.0)
    passages([row], by="t", topic="web", wanted=ReadFilters(sites=("a.org",), not_sites=("b.org",)), limit=1)
