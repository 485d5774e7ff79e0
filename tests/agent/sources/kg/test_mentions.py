from pathlib import Path

import pytest

from agent.sources.kg.source import find_mentions
from agent.sources.kg.store import Graph
from tests.agent.sources.kg.graphs import FILMS, make_graph

MORE = [
    ("It", "directed_by", "Bo Lund"),
    ("Lt. Robin Crusoe, U.S.N.", "directed_by", "Bo Lund"),
    ("$9.99", "directed_by", "Ann Ash"),
    ("Taxi!", "directed_by", "Ann Ash"),
    ("Ann Ash", "profession", "director"),
    ("The Kid", "directed_by", "Bo Lund"),
    ("The Kid Brother", "directed_by", "Ann Ash"),
    ("taxi", "has_tags", "city"),
    ("Taxi", "directed_by", "Ida Bell"),
    ("Bell", "located in", "Germany"),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    opened = Graph.open(make_graph(tmp_path_factory.mktemp("kg"), [*FILMS, *MORE]))
    yield opened
    opened.close()


def named(query: str, graph: Graph) -> list[str]:
    return [mention.entity.label for mention in find_mentions(query, graph)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("where was Lina Orr born?", "Lina Orr"),
        ("where was lina orr born", "Lina Orr"),
        ("Who is Lina Orr's husband", "Lina Orr"),
        ("who directed Lt. Robin Crusoe, U.S.N.?", "Lt. Robin Crusoe, U.S.N."),
        ("who directed $9.99", "$9.99"),
        ("what genre is “Aurora Falls”?", "Aurora Falls"),
        ("(Night Ferry) release year", "Night Ferry"),
        ("who directed The Kid Brother", "The Kid Brother"),
        ("who directed pate & sons ltd", "Pâté & Sons, Ltd."),
        ("who directed The Writer", "The Writer"),
        ("who directed It?", "It"),
        ("who directed Taxi", "Taxi"),
        ("which words describe taxi", "taxi"),
    ],
)
def test_the_name_is_found(query: str, first: str, graph: Graph):
    assert named(query, graph)[0] == first


def test_the_longest_name_wins(graph: Graph):
    assert named("who directed The Kid Brother", graph) == ["The Kid Brother"]
    assert named("is Ida Bell in it", graph) == ["Ida Bell"]


def test_several_names_are_found(graph: Graph):
    assert set(named("did Tom Vance star in Aurora Falls or in Night Ferry", graph)) == {
        "Tom Vance",
        "Aurora Falls",
        "Night Ferry",
    }


def test_a_common_word_is_a_name_only_where_there_is_no_other(graph: Graph):
    assert "director" not in named("who was the director of Aurora Falls", graph)
    assert named("who is a director", graph) == ["director"]
    assert "It" not in named("is it by Tom Vance", graph)


@pytest.mark.parametrize(
    "query", ["where was Lina Or born", "when did LinaOrr die", "what is the birthplace of lnia orr?"]
)
def test_a_name_with_a_typo_is_found(query: str, graph: Graph):
    found = find_mentions(query, graph)
    assert found[0].entity.label == "Lina Orr"
    assert found[0].weight < 1


def test_a_part_of_a_name_is_found_where_nothing_else_is(graph: Graph):
    assert named("what films was Vance in", graph)[0] == "Tom Vance"


def test_brackets_are_taken_at_their_word(graph: Graph):
    assert named("who is in [Night Ferry] beside Tom Vance", graph) == ["Night Ferry"]
    assert named("who is in [Nihgt Ferry]", graph)[:1] == ["Night Ferry"]
    assert named("who is in [no such thing anywhere] with Tom Vance", graph) == ["Tom Vance"]


@pytest.mark.parametrize("query", ["", "   ", "?!", "[]", "[[", "who is", "\x00", "a" * 50_000, "the of " * 5000])
def test_a_query_without_a_name_finds_nothing(query: str, graph: Graph):
    assert named(query, graph) == []


def test_a_long_text_is_read_in_part(graph: Graph):
    assert named("Lina Orr " + "and so on " * 20_000, graph) == ["Lina Orr"]


def test_nothing_is_written_beside_a_graph(tmp_path: Path):
    opened = Graph.open(make_graph(tmp_path))
    find_mentions("Lina Orr", opened)
    opened.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.kg", "triples.tsv"]
