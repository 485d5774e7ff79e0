import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import PlanError
from agent.plan import Plan, parse_plan
from agent.protocols import TextProtocol, protocol_named
from agent.protocols.base import Tool

SOURCES = ("web", "news", "kg", "all", "documents")
KG = protocol_named("kg")
REFLECT = protocol_named("reflect")
HASHES = protocol_named("multisearch").model_copy(update={"separator": "##"})
CALLS = KG.model_copy(
    update={
        "plan": "calls",
        "max_queries": 8,
        "tools": {"search": Tool(source="all"), "visit": Tool(source="page", argument="url")},
    }
)
FULL = '{"query": "where was she born", "entity": ["Lina Orr"], "relation": ["place of birth"]}'
QUERIES = [("A", "where was she born", "documents"), ("K", "[Lina Orr] place of birth", "kg")]


def read(text: str, protocol: TextProtocol, sources: tuple[str, ...] = SOURCES) -> list[tuple[str, str, str]]:
    return [(n.id, n.query, n.source) for n in parse_plan(text, protocol=protocol, sources=sources).nodes]


# One query


def test_one_query_is_the_whole_text():
    assert read(' where, "when" (web)\nA -> B ', REFLECT) == [("A", 'where, "when" (web)\nA -> B', "all")]


@pytest.mark.parametrize("text", ["", " \n "])
def test_an_empty_query_is_refused(text: str):
    with pytest.raises(PlanError, match=r"the plan holds no query; write at least one query$"):
        read(text, REFLECT)


# A separator of its own


def test_another_separator_than_a_comma_knows_neither_quotes_nor_lines():
    assert read('a, b ## "c ## d"\ne##', HASHES) == [
        ("A", "a, b", "all"),
        ("B", '"c', "all"),
        ("C", 'd"\ne', "all"),
    ]


# A graph and documents


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        f"```json\n{FULL}\n```",
        "{'query': 'where was she born', 'entity': 'Lina Orr', 'relation': 'place of birth',}",
        '{"query": “where was she born”, "Entities": ["Lina Orr",], "relations": ["place of birth"]}',
        '\n{"query": "where was she born",\n "entity": [" Lina Orr ", ""], "relation": ["place of birth"]}\n',
    ],
)
def test_documents_and_the_graph_are_searched_apart(text: str):
    assert read(text, KG) == QUERIES


def test_what_the_graph_is_searched_for_stands_on_its_node():
    graph = parse_plan(FULL, protocol=KG, sources=SOURCES).nodes[1]
    assert (graph.entities, graph.relations) == (("Lina Orr",), ("place of birth",))


@pytest.mark.parametrize(
    ("text", "sources", "queries"),
    [
        (FULL, ("web", "all"), [("A", "where was she born", "all")]),
        (FULL, ("kg", "all"), [("K", "[Lina Orr] place of birth", "kg")]),
        (FULL, ("kg",), [("K", "[Lina Orr] place of birth", "kg")]),
        ('{"query": "x"}', SOURCES, [("A", "x", "documents")]),
        ('{"query": "x", "entity": null, "relation": []}', SOURCES, [("A", "x", "documents")]),
        ('{"query": "x", "relation": ["author"]}', SOURCES, [("A", "x", "documents"), ("K", "x author", "kg")]),
        ('{"entity": ["A [b]", "C"]}', SOURCES, [("K", "[A (b)] [C]", "kg")]),
    ],
)
def test_a_side_that_is_not_there_or_not_wanted_is_left_out(
    text: str, sources: tuple[str, ...], queries: list[tuple[str, str, str]]
):
    assert read(text, KG, sources) == queries


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "one JSON object, and this is nothing; write {"),
        ("where was she born", "'where was she born' is no JSON: Expecting value at character 1; write {"),
        ('"where"', "this is something else"),
        ('{"query": "a"} {"query": "b"}', "this is 2 values"),
        ("{'query': 'who's it'}", "is no JSON: Expecting ',' delimiter at character 16"),
        ('{"query": "x', "is no JSON: Unterminated string"),
        ('{"query": "a", "query": "b"}', "the key 'query' occurs twice"),
        ('{"query": "a", "Query": "b"}', "a key occurs twice"),
        ('{"query": "a", "source": "web"}', "'source' is no key of a search"),
        ('{"query": ["a", "b"]}', "has one query, and this one has 2"),
        ('{"query": 3}', "'query' must be a string or a list of strings, not 3"),
        ('{"query": "a", "entity": [["x"]]}', "'entity' must be a string"),
        ("{}", "the search has no query; write {"),
        ('{"query": " "}', "the search has no query; write {"),
        ("[" * 100_000, "no JSON|nested too deeply"),
        (f'{{"query": {"1" * 5000}}}', "a number that is too long"),
    ],
)
def test_what_is_doubtful_is_refused_with_the_form(text: str, why: str):
    with pytest.raises(PlanError, match=why) as caught:
        read(text, KG)
    assert "\n" not in str(caught.value)


# Function calls


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "search", "arguments": {"query": ["a", "b"]}}',
        '\n{"name": "search", "arguments": {"query": "a"}}\n\n{"name": "search", "arguments": {"query": "b"}}\n',
        '[{"name": "search", "arguments": {"query": ["a"]}}, {"name": "search", "arguments": {"query": "b"}}]',
        "{'name': 'search', 'arguments': '{\"query\": [\"a\", \"b\"]}'}",
        '{"name": "search", "arguments": {"query": ["a", "b"], "top_k": 10}}',
    ],
)
def test_every_query_of_every_call_is_a_node(text: str):
    assert read(text, CALLS) == [("A", "a", "all"), ("B", "b", "all")]


def test_a_node_keeps_the_call_that_it_is_from():
    first = '{"name": "search", "arguments": {"query": "é"}}'
    second = '{"name": "search",\n "arguments": {"query": "b",}}'
    plan = parse_plan(f"\n{first}\n{second} ", protocol=CALLS, sources=SOURCES)
    assert [node.written for node in plan.nodes] == [first, second]


def test_a_tool_asks_its_own_source_by_its_own_argument():
    text = '{"name": "visit", "arguments": {"url": ["http://x.org"], "goal": "read it"}}'
    assert read(text, CALLS, ("all", "page")) == [("A", "http://x.org", "page")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"name": "python", "arguments": {"code": "1"}}', "'python' is no function; there are: search$"),
        ('{"name": "visit", "arguments": {"url": "u"}}', "'visit' is not connected here; there are: search$"),
        ('{"name": "search", "arguments": {}}', "'search' was called without 'query'"),
        ('{"name": "search"}', "'search' was called without 'query'"),
        ('{"name": "search", "arguments": []}', "the arguments of 'search' are no JSON object"),
        ('{"name": "search", "arguments": "x"}', "the arguments of 'search' are no JSON object"),
        (f'{{"name": "search", "arguments": "{"[" * 3000}"}}', "the arguments of 'search' are no JSON object"),
        (f'{{"name": "search", "arguments": "{"1" * 5000}"}}', "the arguments of 'search' are no JSON object"),
        (f'{{"name": "search", "arguments": {"1" * 5000}}}', "a number that is too long"),
        ('{"arguments": {}}', "is no function call; write {"),
        ('search("x")', "is no JSON: Expecting value at character 1; write {"),
        ('{"name": "search", "arguments": {"query": "a"}', "is no JSON"),
        ("", "the plan holds no query"),
    ],
)
def test_a_call_that_cannot_run_is_refused_with_what_there_is(text: str, why: str):
    with pytest.raises(PlanError, match=why) as caught:
        read(text, CALLS)
    assert "\n" not in str(caught.value)


# Text as long as a turn


@pytest.mark.timeout(30)  # each took minutes, and held the event loop
@pytest.mark.parametrize(
    "text",
    [
        "```" + " " * 100_000,
        "```json" + "a" * 100_000,
        "," * 1_000_000 + "x",
        "{" + ",".join(f'"k{number}":1' for number in range(100_000)) + "}",
        '{"query": "' + "–" * 1_500_000 + '"}',
    ],
    ids=["a fence that nothing closes", "a word behind it", "commas", "keys", "a string"],
)
def test_json_is_read_in_time_that_grows_with_its_length_alone(text: str):
    with pytest.raises(PlanError):
        read(text, KG)


@pytest.mark.parametrize(
    ("written", "held"),
    [
        ('```\n{"query": "a"}\n```', True),
        ('```{"query": "a"}```', True),
        ('``` json{"query": "a"}\n\t```', False),
        ('```json \n{"query": "a"}\n  ```', True),
        ('```\n{"query":\n```\n```\n"a"}\n```', True),
        ('```\n{"query": "a"}', False),
        ('Here: ```\n{"query": "a"}\n```', False),
        ('````\n{"query": "a"}\n````', False),
    ],
)
def test_code_fences_are_taken_off_where_they_hold_everything(written: str, held: bool):
    if held:
        assert read(written, KG) == [("A", "a", "documents")]
    else:
        with pytest.raises(PlanError, match="is no JSON"):
            read(written, KG)


# Any text

JSONISH = st.text(st.sampled_from("{}[]\"'“”:,\\ \nabquery`"), max_size=60)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["query", "entity", "name", "x"]), inner)
    ),
    max_leaves=6,
)


@given(JSONISH | VALUES.map(json.dumps) | VALUES.map(str), st.sampled_from([KG, CALLS, REFLECT, HASHES]))
def test_any_text_is_a_plan_or_a_sentence(text: str, protocol: TextProtocol):
    try:
        plan: Plan = parse_plan(text, protocol=protocol, sources=SOURCES)
    except PlanError:
        return
    assert 1 <= len(plan.nodes) <= protocol.max_queries
    assert all(node.query.strip() for node in plan.nodes)


@given(st.text(min_size=1).filter(str.strip), st.lists(st.text(max_size=9), max_size=3))
def test_what_is_json_is_read_as_json_reads_it(query: str, entities: list[str]):
    text = json.dumps({"query": query[:400], "entity": entities})
    node = parse_plan(text, protocol=KG, sources=("all",)).nodes[0]
    assert node.query == query[:400].strip()
