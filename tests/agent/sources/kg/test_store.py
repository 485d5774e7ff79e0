import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import SetupError
from agent.sources.kg.build import build_graph
from agent.sources.kg.spelling import SpellingWriter, alike
from agent.sources.kg.store import SCAN, Graph, NameMatch
from tests.agent.sources.kg.graphs import make_graph, write_tsv

HUB = 3000


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    opened = Graph.open(make_graph(tmp_path_factory.mktemp("kg")))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("hub")
    rows = [(f"film {n}", "genre", "Drama") for n in range(HUB)] + [("Drama", "part of", "Theatre")]
    rows += [(f"word {n}", "tagged", "Drama") for n in range(HUB)] + [(f"film {n}", "year", "2000") for n in range(9)]
    opened = Graph.open(make_graph(folder, rows))
    yield opened
    opened.close()


def labels(matches: list[NameMatch]) -> list[str]:
    return [match.entity.label for match in matches]


@pytest.mark.parametrize("name", ["lina orr", "LINA  ORR", "Lína Örr"])
def test_an_exact_name_is_found_whatever_its_case_and_accents(name: str, graph: Graph):
    assert labels(graph.exact(name)) == ["Lina Orr"]


@pytest.mark.parametrize("name", ["pate & sons, ltd.", "Pate Sons Ltd"])
def test_punctuation_may_be_left_out(name: str, graph: Graph):
    assert labels(graph.exact(name)) == ["Pâté & Sons, Ltd."]


def test_a_prefix_is_no_pattern(graph: Graph):
    assert set(labels(graph.prefix("t"))) == {"Tom Vance", "Trieste", "The Writer"}
    for text in ("%", "_om", "t*", "T?", "", " "):
        assert graph.prefix(text) == []


@pytest.mark.parametrize(
    "text", ['"', "AND", "NOT x", "a OR b", "folded:lina", "lina*", "NEAR(a b)", "(", "^lina -orr", "'; --"]
)
def test_search_syntax_in_a_name_is_plain_text(text: str, graph: Graph):
    for way in (graph.exact, graph.prefix, graph.words, graph.typo, graph.lookup):
        way(text)


@given(text=st.text(max_size=40))
def test_no_text_breaks_a_look_up(text: str, graph: Graph):
    for way in (graph.exact, graph.prefix, graph.words, graph.typo, graph.lookup):
        assert all(0 < match.score <= 1 for match in way(text))


@pytest.mark.parametrize("text", ["a" * 100_000, "lina orr " * 20_000, " ".join(map(str, range(20_000)))])
def test_a_very_long_text_is_no_name_and_takes_no_time(text: str, graph: Graph):
    assert graph.lookup(text) in ([], graph.words("lina orr"))


def test_words_find_a_name_in_any_order(graph: Graph):
    assert labels(graph.words("orr lina")) == ["Lina Orr"]
    assert labels(graph.words("writer")) == ["The Writer", "Ann Writer"]
    assert labels(graph.words("sons ltd")) == ["Pâté & Sons, Ltd."]
    assert labels(graph.words("lina vance")) == []


def test_look_up_goes_from_exact_to_loose(graph: Graph):
    assert [(m.entity.label, m.how) for m in graph.lookup("the writer")] == [("The Writer", "exact")]
    assert [(m.entity.label, m.how) for m in graph.lookup("writer")] == [
        ("The Writer", "words"),
        ("Ann Writer", "words"),
    ]
    assert [(m.entity.label, m.how) for m in graph.lookup("tires")] == []
    assert [(m.entity.label, m.how) for m in graph.lookup("Treiste")] == [("Trieste", "typo")]


def test_what_is_named_most_comes_first(tmp_path: Path):
    aliases = write_tsv(tmp_path / "a.tsv", [["Q1", "paris"], ["Q2", "paris"], ["Q3", "paris match"]])
    rows = [["Q1", "r", "x"], *[["Q2", "r", f"x{n}"] for n in range(5)], *[["Q3", "r", f"y{n}"] for n in range(9)]]
    build_graph([write_tsv(tmp_path / "t.tsv", rows)], tmp_path / "g.kg", aliases=aliases)
    graph = Graph.open(tmp_path / "g.kg")
    assert [match.entity.key for match in graph.exact("Paris")] == ["Q2", "Q1"]
    assert [match.entity.key for match in graph.prefix("par")] == ["Q3", "Q2", "Q1"]
    assert [match.entity.key for match in graph.lookup("paris")] == ["Q2", "Q1", "Q3"]
    graph.close()


def edits(name: str) -> list[str]:
    """Every name that is one letter away."""
    found = [name[:at] + name[at + 1 :] for at in range(len(name))]
    found += [name[:at] + "q" + name[at:] for at in range(len(name) + 1)]
    found += [name[:at] + "q" + name[at + 1 :] for at in range(len(name))]
    found += [name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in range(len(name) - 1)]
    return [edit for edit in found if edit != name]


@pytest.mark.parametrize("name", ["trieste", "italy", "lina orr", "night ferry"])
def test_any_single_edit_of_a_name_is_found(name: str, graph: Graph):
    for text in edits(name):
        assert labels(graph.typo(text))[:1] == [next(m.entity.label for m in graph.exact(name))], text


def test_single_edits_are_found_among_many_names(tmp_path: Path):
    rng = random.Random(7)
    names = list({"".join(rng.choices("abcdefgiklmnoprst", k=rng.randint(5, 12))) for _ in range(5000)})
    graph = Graph.open(make_graph(tmp_path, [(name, "r", "x") for name in names]))
    for name in names[:60]:
        for text in rng.sample(edits(name), 4):
            assert name in labels(graph.typo(text, limit=10)), text
    graph.close()


def test_what_is_no_typo_is_not_found(graph: Graph):
    assert graph.typo("completely different") == []


@given(st.lists(st.text(alphabet="abcö", min_size=1, max_size=8), min_size=1, max_size=30), st.integers(1, 60))
def test_a_name_is_like_itself_however_the_lists_are_cut(names: list[str], buffer: int):
    db = sqlite3.connect(":memory:")

    def rows(sql: str, parameters: Sequence[Any], *, kinds: str) -> list[tuple[Any, ...]]:
        return db.execute(sql, parameters).fetchall()

    writer = SpellingWriter(db, buffer=buffer)
    for number, name in enumerate(names, start=1):
        writer.add(number, name)
    writer.flush()
    for number, name in enumerate(names, start=1):
        found = alike(rows, name).tolist()
        assert number in found
        assert names[found[0] - 1] == name or len(set(found)) == len(found)
    db.close()


def test_a_hub_is_read_in_part_and_every_relation_can_be(hub: Graph):
    drama = hub.exact("drama")[0].entity
    assert drama.degree == 2 * HUB + 1
    assert len(hub.edges(drama.id, "tail", limit=100)) == 100
    assert {hub.relations[r].key for r in hub.relations_of(drama.id, "tail")} == {"genre", "tagged"}
    assert {hub.relations[r].key for r in hub.relations_of(drama.id, "head")} == {"part of"}
    assert hub.relations_of(hub.exact("Theatre")[0].entity.id, "head") == []
    both = hub.edges_by(drama.id, "tail", hub.relations_of(drama.id, "tail"), limit=10)
    assert sorted(hub.relations[edge.relation].key for edge in both) == ["genre"] * 10 + ["tagged"] * 10


def test_often_named_neighbours_come_first(hub: Graph):
    drama = hub.exact("drama")[0].entity
    first = hub.edges(drama.id, "tail", limit=9)
    assert {edge.label for edge in first} == {f"film {n}" for n in range(9)}


def test_many_names_with_one_start_are_read_in_part(hub: Graph):
    assert len(hub.prefix("film", limit=10 * SCAN)) == SCAN
    assert len(hub.words("film", limit=10 * SCAN)) == SCAN


def test_a_file_that_is_no_graph_is_refused_with_the_fix(tmp_path: Path):
    with pytest.raises(SetupError, match=r"no graph at .*; build one with: cairn kg build"):
        Graph.open(tmp_path / "none.kg")
    (tmp_path / "text.kg").write_text("no graph, " * 1000)
    with pytest.raises(SetupError, match="cannot be read"):
        Graph.open(tmp_path / "text.kg")
    with sqlite3.connect(tmp_path / "db.kg") as db:
        db.execute("CREATE TABLE x (y)")
    db.close()
    with pytest.raises(SetupError, match="is not a graph"):
        Graph.open(tmp_path / "db.kg")


def test_a_graph_of_another_version_must_be_built_again(tmp_path: Path):
    out = make_graph(tmp_path)
    with sqlite3.connect(out) as db:
        db.execute('UPDATE card SET text = \'{"version": 99, "more": 1}\'')
    db.close()
    with pytest.raises(SetupError, match="has version 99, this Cairn reads 1: build it again"):
        Graph.open(out)


def test_a_truncated_graph_is_refused(tmp_path: Path):
    out = make_graph(tmp_path)
    out.write_bytes(out.read_bytes()[:5000])
    with pytest.raises(SetupError, match="cannot be read"):
        Graph.open(out)


def test_a_graph_may_lie_where_nothing_can_be_written_and_have_an_odd_name(tmp_path: Path):
    folder = tmp_path / "a ?#% b"
    folder.mkdir()
    out = make_graph(folder)
    folder.chmod(0o500)
    try:
        graph = Graph.open(out)
        assert labels(graph.exact("Trieste")) == ["Trieste"]
        graph.close()
    finally:
        folder.chmod(0o700)
