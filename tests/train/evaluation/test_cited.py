from typing import Any

import pytest

from train.evaluation.answer import Citation
from train.evaluation.cited import Passages, address, read_citations

WORLD = Passages({"web-1": "https://web.little.world/1", "kg-2": "https://kg.little.world/2", "news-3": ""})


def read(text: str = "", **more: Any) -> list[tuple[str, str]]:
    return [(citation.id, citation.url) for citation in read_citations(text, passages=WORLD, **more)]


def test_a_list_of_addresses_is_known_by_them():
    cited = read(citations=["https://web.little.world/1", "https://elsewhere.org/x"])
    assert cited == [("web-1", "https://web.little.world/1"), ("", "https://elsewhere.org/x")]


@pytest.mark.parametrize(
    "annotation",
    [
        {"type": "url_citation", "url_citation": {"url": "https://kg.little.world/2", "title": "T"}},
        {"type": "url_citation", "url": "https://kg.little.world/2", "title": "T", "start_index": 3},
    ],
)
def test_annotations_are_read_in_both_shapes(annotation: dict[str, Any]):
    (citation,) = read_citations(
        "", annotations=[annotation, {"type": "file_citation", "file_id": "f"}], passages=WORLD
    )
    assert citation == Citation(id="kg-2", url="https://kg.little.world/2", title="T")


def test_search_results_say_more_of_what_is_cited_and_no_more_is_cited():
    results = [
        {"url": "https://a.org/x", "title": "X", "snippet": "About X.", "id": "x-1"},
        {"url": "https://a.org/y", "title": "Y", "snippet": "About Y."},
    ]
    (citation,) = read_citations("", citations=["https://a.org/x"], search_results=results, passages=WORLD)
    assert citation == Citation(id="x-1", url="https://a.org/x", title="X", text="About X.")


def test_of_search_results_alone_those_count_that_the_text_numbers_or_that_say_so():
    results = [{"url": "https://a.org/1"}, {"url": "https://a.org/2"}, {"url": "https://a.org/3", "cited": True}]
    assert read("It is so [2].", search_results=results) == [("", "https://a.org/2"), ("", "https://a.org/3")]


def test_a_known_address_counts_for_more_than_an_id_of_the_agents_own():
    results = [{"url": "https://web.little.world/1", "id": "kg-2"}, {"url": "https://a.org/x", "id": "their-7"}]
    assert read(citations=[result["url"] for result in results], search_results=results) == [
        ("web-1", "https://web.little.world/1"),
        ("their-7", "https://a.org/x"),
    ]


def test_what_is_cited_twice_counts_once():
    urls = ["https://web.little.world/1", "http://www.web.little.world/1/"]
    annotation = {"type": "url_citation", "url_citation": {"url": f"{urls[0]}?utm_source=agent#part"}}
    assert read(citations=urls, annotations=[annotation]) == [("web-1", urls[0])]


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("See [this](https://web.little.world/1).", [("web-1", "https://web.little.world/1")]),
        ("See https://kg.little.world/2, please.", [("kg-2", "https://kg.little.world/2")]),
        (
            "See (https://web.little.world/1) and <https://kg.little.world/2>.",
            [
                ("web-1", "https://web.little.world/1"),
                ("kg-2", "https://kg.little.world/2"),
            ],
        ),
        ("[1]: https://web.little.world/1\n", [("web-1", "https://web.little.world/1")]),
        ("So it is [news-3; web-1], not [maybe].", [("news-3", ""), ("web-1", "")]),
        ("[a](https://e.org/wiki/X_(film))", [("", "https://e.org/wiki/X_(film)")]),
        ("[web-1](https://web.little.world/1)", [("web-1", "https://web.little.world/1")]),
        ("Nothing [1] to see.", []),
    ],
)
def test_without_any_list_the_text_is_read(text: str, cited: list[tuple[str, str]]):
    assert read(text) == cited


def test_our_own_names_of_passages_without_an_address_are_known():
    assert read(citations=["urn:cairn:corpus:d%201"]) == [("d 1", "urn:cairn:corpus:d%201")]
    assert read(citations=["web-1"]) == [("web-1", "web-1")]


@pytest.mark.parametrize("entry", [None, 3, "", {}, {"title": "no address"}, [], {"url": 5}])
def test_what_is_no_citation_is_passed_over(entry: Any):
    assert read(citations=[entry], annotations=[entry], search_results=[entry]) == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.org/x", "http://www.a.org/x/#top", True),
        ("https://a.org/x?id=1", "https://a.org/x?id=2", False),
        ("https://a.org/x?id=1&utm_source=z", "https://A.org/x?id=1", True),
        ("https://a.org/X", "https://a.org/x", False),
        ("not an address", "not an address ", True),
        ("http://[broken", "http://[broken", True),
    ],
)
def test_addresses_are_compared_by_what_changes_the_page(one: str, other: str, same: bool):
    assert (address(one) == address(other)) is same
