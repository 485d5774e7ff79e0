"""Which tool is searched and which argument gets the query, where the settings leave it open."""

from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent, Tool

from agent.errors import SourceError
from agent.sources.mcp.results import listed_rows, rows_of_result
from agent.sources.mcp.source import QueryCall, chosen_call

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def tool(name: str, *, required: tuple[str, ...] = (), **properties: Any) -> Tool:
    return Tool(name=name, input_schema={"type": "object", "properties": properties, "required": list(required)})


def call(*tools: Tool, **wanted: Any) -> QueryCall:
    given: dict[str, Any] = {"tool": "", "query": "", "limit": "", "fixed": {}, **wanted}
    return chosen_call(tools, name="papers", **given)


def why(*tools: Tool, **wanted: Any) -> str:
    with pytest.raises(SourceError) as caught:
        call(*tools, **wanted)
    assert caught.value.kind == "bad_query"
    return str(caught.value)


@pytest.mark.parametrize(
    ("chosen", "argument"),
    [
        (tool("t", required=("topic",), topic=TEXT, lang=TEXT), "topic"),
        (tool("t", topic=TEXT, most=NUMBER), "topic"),
        (tool("t", required=("lang", "query"), lang=TEXT, query=TEXT), "query"),
        (tool("t", a=TEXT, b=TEXT, q=TEXT), "q"),
        (tool("t", topic={"anyOf": [{"type": "null"}, TEXT]}), "topic"),
        (tool("t", topic={"type": ["string", "null"]}), "topic"),
        (tool("t", sort={"type": "string", "enum": ["a"]}, topic=TEXT), "topic"),
    ],
)
def test_the_query_is_the_argument_that_can_be_no_other(chosen: Tool, argument: str):
    assert call(chosen).query == argument


def test_what_is_fixed_is_no_query_and_is_sent_with_it():
    found = call(tool("t", a=TEXT, b=TEXT, most=NUMBER), fixed={"a": "x"}, limit="most")
    assert found.arguments("falls", 7) == {"a": "x", "b": "falls", "most": 7}


def test_a_choice_that_is_left_open_names_what_there_is():
    assert (
        "no argument of the tool 't' of papers is surely the query; name it with query = … in [mcp.papers]: a, b"
        in why(tool("t", a=TEXT, b=TEXT))
    )
    assert why(tool("t", a=NUMBER)).endswith(": a")
    assert why(tool("a"), tool("b")) == "papers has several tools; name one with tool = … in [mcp.papers]: a, b"
    assert call(tool("read", x=TEXT), tool("search_papers", x=TEXT)).tool == "search_papers"


def test_a_name_that_is_not_there_gets_the_nearest_one():
    assert "papers has no tool 'serch'; did you mean 'search'?; it has: search, read" in why(
        tool("search", query=TEXT), tool("read"), tool="serch"
    )
    closed = Tool(
        name="t", input_schema={"type": "object", "properties": {"query": TEXT}, "additionalProperties": False}
    )
    assert "the tool 't' of papers has no argument 'most'" in why(closed, limit="most")


@pytest.mark.parametrize("schema", [{}, {"properties": 3}, {"properties": {"a": 3}, "required": "a"}])
def test_a_schema_that_is_none_is_no_error_of_ours(schema: dict[str, Any]):
    broken = Tool(name="t", input_schema=schema)
    assert "is surely the query" in why(broken)
    assert call(broken, query="anything").query == "anything"


def test_rows_are_found_inside_of_objects_and_nothing_else_is_taken_for_one():
    row = {"title": "T", "url": "https://a.org", "snippet": "S"}
    assert [r.text for r in listed_rows({"data": {"hits": [row, 3, {"x": 1}]}})] == ["S"]
    assert listed_rows({"timezone": "UTC", "time": "12:00"}) == []
    assert listed_rows({"a": {"b": {"c": {"d": [row]}}}}) == []
    assert [r.title for r in listed_rows({"name": "One", "link": "https://a.org"})] == ["One"]
    assert listed_rows([{"title": "no text and no address"}]) == listed_rows("text") == listed_rows(None) == []


FOUND = [{"title": "R1", "url": "https://a.org/1", "text": "one"}, {"title": "R2", "url": "https://a.org/2"}]


@pytest.mark.parametrize(
    "beside",
    [
        {"collection": {"name": "Main", "description": "All that the library holds."}},
        {"server": {"name": "kb", "url": "https://kb.example"}},
        {"images": [{"url": "https://a.org/x.png", "description": "A picture with a long description."}]},
        {"facets": [{"name": "lang", "description": "The language of a page, by its code."}]},
    ],
)
@pytest.mark.parametrize("name", ["results", "items", "hits", "documents", "pages", "data", "matches"])
def test_what_comes_before_the_results_is_none_of_them(name: str, beside: dict[str, Any]):
    assert [r.title for r in listed_rows({**beside, name: FOUND})] == ["R1", "R2"]
    assert listed_rows({**beside, name: []}) == []


def test_a_list_of_any_name_comes_before_an_object_unless_that_is_a_page():
    other = {
        "tags": [{"name": "a", "url": "https://a.org"}],
        "found": FOUND,
        "by": {"name": "kb", "summary": "A base."},
    }
    assert [r.title for r in listed_rows(other)] == ["R1", "R2"]
    assert [r.title for r in listed_rows({"title": "P", "text": "The page itself.", "links": FOUND})] == ["P"]
    author = {"name": "Ann", "url": "https://a.org/ann"}
    assert [r.title for r in listed_rows({"author": author, "title": "P", "text": "The page itself."})] == ["P"]


def test_the_text_of_a_row_is_found_under_any_name():
    row = {"title": "T", "url": "https://a.org", "id": "a-long-id-that-is-no-text"}
    assert [r.text for r in listed_rows([row | {"full_body": "Owls hunt."}])] == ["Owls hunt."]
    assert [r.text for r in listed_rows([row])] == [""]
    for name in ("markdown", "page_content", "chunk"):
        assert [r.text for r in listed_rows([{name: "Owls hunt."}])] == ["Owls hunt."]
    (found,) = listed_rows([{"page_content": "Owls hunt.", "metadata": {"title": "T", "source": "https://a.org"}}])
    assert (found.title, found.url) == ("T", "https://a.org")


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"entities": [], "relations": []}', '{"query": "q", "total": 0, "results": []}', "  "]
)
def test_a_list_that_is_empty_is_no_passage(text: str):
    result = CallToolResult(content=[TextContent(type="text", text=text)])
    assert rows_of_result(result, title="t", query="q", most_chars=100) == []


def test_an_answer_beside_an_empty_list_is_kept():
    result = CallToolResult(content=[TextContent(type="text", text='{"answer": "In 1965.", "results": []}')])
    assert "In 1965." in rows_of_result(result, title="t", query="q", most_chars=100)[0].text


def test_lists_of_texts_are_one_text():
    (row,) = listed_rows({"entities": [{"name": "Lina", "observations": ["She measures.", "She climbs."]}]})
    assert (row.title, row.text) == ("Lina", "She measures.\nShe climbs.")


def test_an_address_that_is_none_of_the_web_and_signs_that_no_text_has_are_left_out():
    (row,) = listed_rows([{"title": "a\x00b", "text": "x\ud800y", "url": "javascript:alert(1)"}])
    assert (row.title, row.text, row.url) == ("ab", "xy", "")


def test_an_answer_has_no_more_characters_than_the_settings_allow():
    content = [TextContent(type="text", text="word " * 1_000) for _ in range(50)]
    rows = rows_of_result(CallToolResult(content=[*content]), title="t", query="word", most_chars=7_000)
    assert sum(len(row.text) for row in rows) <= 7_000
    assert len(rows) == 2
