import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import PlanError
from agent.plan import Filter, Node, Plan, parse_plan
from agent.plan.text import read_lines
from agent.protocols import protocol_named

CAIRN = protocol_named("cairn")
MULTISEARCH = protocol_named("multisearch")
SOURCES = ("web", "news", "arxiv", "kg", "all")


def plan(text: str, *, unknown: str = "reject") -> Plan:
    protocol = CAIRN.model_copy(update={"unknown_source": unknown})
    return parse_plan(text, protocol=protocol, sources=SOURCES)


def short(plan: Plan) -> list[tuple[str, str, str]]:
    return [(node.id, node.query, node.source) for node in plan.nodes]


def edges(plan: Plan) -> set[tuple[str, str]]:
    return {(parent, node.id) for node in plan.nodes for parent in node.parents}


def queries(text: str) -> list[str]:
    return [node.query for node in parse_plan(text, protocol=MULTISEARCH, sources=SOURCES).nodes]


# What a policy writes, and how it is read


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("A: who directed it (web)", [("A", "who directed it", "web")]),
        ("who directed it\nwhen (news)", [("A", "who directed it", "all"), ("B", "when", "news")]),
        ("B: x (web)\ny", [("B", "x", "web"), ("A", "y", "all")]),
        ("Q1: foo (General)", [("Q1", "foo", "all")]),
        ("Nodes: A: foo (News)", [("A", "foo", "news")]),
        ("Nodes:\nA: foo (News)\nEdges:\nnone", [("A", "foo", "news")]),
        ("A: foo (News) B: bar (web)", [("A", "foo", "news"), ("B", "bar", "web")]),
        ("A: foo (News), B: bar (web).", [("A", "foo", "news"), ("B", "bar", "web")]),
        ("A: foo; B: bar", [("A", "foo", "all"), ("B", "bar", "all")]),
        ("B: foo (2024)", [("B", "foo (2024)", "all")]),
        ("A: x (the 2025 film)", [("A", "x (the 2025 film)", "all")]),
        ("A: x (Paris, France)", [("A", "x (Paris, France)", "all")]),
        ("A: president (not Lincoln)", [("A", "president (not Lincoln)", "all")]),
        ("A: what is it (kind of)", [("A", "what is it (kind of)", "all")]),
        ("A: GDP (PPP) (News)", [("A", "GDP (PPP)", "news")]),
        ("A: ratio 3:1 in x: y (News)", [("A", "ratio 3:1 in x: y", "news")]),
        ("A：foo（News）", [("A", "foo", "news")]),
        ("A: 世界：海 (kg)", [("A", "世界：海", "kg")]),
        ("A: x (WEB)", [("A", "x", "web")]),
        ("- A: x (web)\n* B: y (kg)", [("A", "x", "web"), ("B", "y", "kg")]),
        ("1. one thing\n2. another", [("A", "one thing", "all"), ("B", "another", "all")]),
        ("1. FC Köln (web)", [("A", "1. FC Köln", "web")]),
        ("10:30 train to Trieste", [("A", "10:30 train to Trieste", "all")]),
        ("Paris → London train time (web)", [("A", "Paris → London train time", "web")]),
        ("Dune: part two (web)", [("A", "Dune: part two", "web")]),
        ("A: Vitamin B: sources (web)", [("A", "Vitamin B: sources", "web")]),
        ("A: issue #7 of C# news (web)", [("A", "issue #7 of C# news", "web")]),
    ],
)
def test_what_can_be_read_without_doubt_is_read(text: str, nodes: list[tuple[str, str, str]]):
    assert short(plan(text)) == nodes


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("A -> B, C -> B", {("A", "B"), ("C", "B")}),
        ("A -> B; C -> B;", {("A", "B"), ("C", "B")}),
        ("A -> B -> C", {("A", "B"), ("B", "C")}),
        ("A, C -> B", {("A", "B"), ("C", "B")}),
        ("[A, C] -> B", {("A", "B"), ("C", "B")}),
        ("A and C -> B", {("A", "B"), ("C", "B")}),
        ("A -> B, C", {("A", "B"), ("A", "C")}),
        ("A → B", {("A", "B")}),
        ("A => B", {("A", "B")}),
        ("A --> B", {("A", "B")}),
        ("A－＞B", {("A", "B")}),
        ("a -> b", {("A", "B")}),
        ("Node A -> Node B", {("A", "B")}),
        ("Edges: A -> B", {("A", "B")}),
        ("Edges: none", set[tuple[str, str]]()),
    ],
)
def test_edges_are_read_in_every_common_form(written: str, read: set[tuple[str, str]]):
    assert edges(plan(f"A: x\nB: y\nC: z\n{written}")) == read


def test_edges_may_stand_on_the_line_of_a_query():
    assert edges(plan("A: x (web); B: y (web); A -> B")) == {("A", "B")}
    assert edges(plan("Nodes: A: x (web) B: y (web) Edges: A -> B")) == {("A", "B")}


def test_a_reference_in_a_query_is_an_edge():
    read = plan("A: who directed it (web)\nB: birthplace of #A (kg)\nC: the #B and #Z of #1")
    assert edges(read) == {("A", "B"), ("B", "C")}
    assert read.references == (("B", "A"), ("C", "B"))


def test_filters_are_read_beside_the_source_or_alone():
    (first, second) = plan("x (news, after 2026-01-01, site: Example.ORG)\ny (before 2025, lang=EN)").nodes
    assert first.filters == (Filter(name="after", value="2026-01-01"), Filter(name="site", value="example.org"))
    assert second == Node(
        id="B", query="y", source="all", filters=(Filter(name="before", value="2025"), Filter(name="lang", value="en"))
    )


def test_without_a_source_named_all_the_first_one_is_searched():
    assert short(parse_plan("x", protocol=CAIRN, sources=["web", "kg"])) == [("A", "x", "web")]


# What cannot run, and the sentence that says so


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no query; write at least one"),
        ("A -> B", "there is only 'A -> B'"),
        ("\n".join(f"q{n}" for n in range(9)), "at most 8 queries; this one has 9"),
        ("A: x\nA: y", "two queries have the id 'A'; give each its own"),
        ("A: (web)", "line 'A: \\(web\\)' has no query"),
        ("A: x (Bing)", "line 'A: x \\(Bing\\)' asks 'Bing', which is no source; there are: all, arxiv, kg, news, web"),
        ("A: x (film)", "if '\\(film\\)' belongs to the query, write the source behind it"),
        ("A: x (web, news)", "names the sources 'web' and 'news'; write one line for each"),
        ("A: x (web, yesterday)", "'yesterday' is no filter; there are: after DATE, before DATE, site HOST"),
        ("A: x (web, after 2026-13-01)", "'2026-13-01' is no date; write it as 2026-01-31"),
        ("A: x\nA -> B", "edge 'A -> B' names 'B', which is no query of this plan"),
        ("A: x\nA ->", "edge 'A ->' cannot be read"),
        ("A: x\nB: y\nA -> B\nB -> A", "circle: A -> B -> A; take one of its edges out"),
        ("A: #B\nB: #A", "circle: A -> B -> A"),
        ("A: x\nA -> A", "circle: A -> A"),
        ("who won (2024) B: where (web)", "seems to hold several queries; write one query a line"),
        ("A: " + "x" * 500, "has a query of 500 characters; write at most 400"),
    ],
)
def test_a_plan_that_cannot_run_is_refused_with_the_line_and_the_fix(text: str, why: str):
    with pytest.raises(PlanError, match=why) as caught:
        plan(text)
    assert "\n" not in str(caught.value)


def test_a_protocol_may_drop_queries_to_unknown_sources():
    read = plan("A: x (web)\nB: y (Bing)\nC: z (kg)\nA -> B -> C\nA -> C", unknown="drop")
    assert (short(read), edges(read), read.dropped) == (
        [("A", "x", "web"), ("C", "z", "kg")],
        {("A", "C")},
        ("B",),
    )


def test_a_plan_of_which_everything_is_dropped_is_refused():
    with pytest.raises(PlanError, match="no source"):
        plan("A: x (Bing)", unknown="drop")


# Order


def test_ties_keep_the_order_of_the_plan():
    assert [node.id for node in plan("A: x\nB: y\nC: z\nD: u\nC -> A").nodes] == ["B", "C", "A", "D"]


@given(
    st.permutations(range(8)),
    st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda edge: edge[0] < edge[1])),
)
def test_parents_always_come_before_children(names: list[int], wanted: set[tuple[int, int]]):
    ids = "ABCDEFGH"
    lines = [f"{ids[number]}: query {number}" for number in names]
    read = plan("\n".join(lines + [f"{ids[a]} -> {ids[b]}" for a, b in wanted]))
    place = {node.id: at for at, node in enumerate(read.nodes)}
    assert edges(read) == {(ids[a], ids[b]) for a, b in wanted}
    assert all(place[parent] < place[child] for parent, child in edges(read))


@given(st.text(st.sampled_from('AB12:,;->→()#" \nxweb（：'), max_size=60), st.sampled_from([CAIRN, MULTISEARCH]))
def test_any_text_is_a_plan_or_a_sentence(text: str, protocol: object):
    chosen = CAIRN if protocol is CAIRN else MULTISEARCH
    try:
        read = parse_plan(text, protocol=chosen, sources=SOURCES)
    except PlanError:
        return
    assert 1 <= len(read.nodes) <= chosen.max_queries
    assert len({node.id for node in read.nodes}) == len(read.nodes)
    assert all(node.query.strip() for node in read.nodes)


# Text as long as a turn


LONG = 200_000


@pytest.mark.timeout(30)  # each took minutes, and held the event loop
@pytest.mark.parametrize(
    "text",
    [
        "x" + "-" * LONG + "y",
        "x" + " " * LONG + "y",
        "A: x)" + " " * LONG + "y",
        "A: x (after" + " " * LONG + "a b)",
        "A: x (not" + ":" * LONG + ")",
        "A: x\nA" + " " * LONG + "B -> C",
        "A: x (lang en, " + "web," * LONG + "y," * LONG + ")",
    ],
    ids=["dashes", "blanks", "blanks behind a bracket", "a filter", "not", "ids", "sources"],
)
def test_a_line_is_read_in_time_that_grows_with_its_length_alone(text: str):
    with pytest.raises(PlanError):
        plan(text)


@pytest.mark.timeout(30)
def test_quotation_marks_that_nothing_closes_are_each_looked_at_once():
    with pytest.raises(PlanError, match="at most 400"):
        queries("“" * 1_500_000)


def test_an_edge_between_many_queries_is_one_however_many_pairs_it_has():
    many = ",".join(f"A{number}" for number in range(100))
    (edge,) = read_lines(f"{many} -> {many}", sources=()).edges
    assert (len(edge.parents), len(edge.children)) == (100, 100)


# Queries with a separator


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a, b, c", ["a", "b", "c"]),
        ("a", ["a"]),
        ('"Dune, part two", c', ["Dune, part two", "c"]),
        ('when was "Dune, part two" out, c', ['when was "Dune, part two" out', "c"]),
        ('5" guns, c', ['5" guns', "c"]),
        ("islands with 1,000 people, c", ["islands with 1,000 people", "c"]),
        ("a，b", ["a", "b"]),
        ("a\nb,", ["a", "b"]),
        ("A: foo (web)", ["A: foo (web)"]),
    ],
)
def test_queries_are_cut_at_the_separator_but_not_inside_quotes(text: str, read: list[str]):
    assert queries(text) == read


def test_a_protocol_without_sources_asks_all():
    (node,) = parse_plan("foo (web)", protocol=MULTISEARCH, sources=SOURCES).nodes
    assert (node.query, node.source) == ("foo (web)", "all")


def test_a_protocol_says_how_many_queries_there_may_be():
    with pytest.raises(PlanError, match="at most 3 queries; this one has 4"):
        queries("a, b, c, d")


def test_a_protocol_may_cut_a_plan_instead_of_rejecting_it():
    cut = {"cut_queries": True, "max_queries": 2}
    read = parse_plan("a, b, c", protocol=MULTISEARCH.model_copy(update=cut), sources=SOURCES)
    assert ([node.query for node in read.nodes], read.dropped) == (["a", "b"], ("C",))
    lines = "A: one (web)\nB: two #A (web)\nC: three (web)\nA -> C"
    read = parse_plan(lines, protocol=CAIRN.model_copy(update=cut), sources=SOURCES)
    assert [node.id for node in read.nodes] == ["A", "B"]


def test_a_plan_of_any_number_of_queries_can_be_cut():
    protocol = CAIRN.model_copy(update={"cut_queries": True, "max_queries": 2})
    lines = [f"query {number}" for number in range(3000)]
    read = parse_plan("\n".join([*lines, "A -> B", "c -> A1"]), protocol=protocol, sources=SOURCES)
    assert (short(read), edges(read)) == ([("A", "query 0", "all"), ("B", "query 1", "all")], {("A", "B")})
    assert len(set(read.dropped)) == 2998


def test_another_separator_can_be_chosen():
    protocol = MULTISEARCH.model_copy(update={"separator": "##"})
    assert [n.query for n in parse_plan("a, b ## c", protocol=protocol, sources=SOURCES).nodes] == ["a, b", "c"]


def test_every_filter_is_read_with_its_value():
    text = "A: x (web, after 2026, before 2026-03, site A.org, not b.example.com, recent Week, lang de, kind Science)"
    (node,) = plan(text).nodes
    assert [(f.name, f.value) for f in node.filters] == [
        ("after", "2026"),
        ("before", "2026-03"),
        ("site", "a.org"),
        ("not", "b.example.com"),
        ("recent", "week"),
        ("lang", "de"),
        ("kind", "science"),
    ]
