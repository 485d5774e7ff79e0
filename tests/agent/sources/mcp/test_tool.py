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


@pytest.mark.parametrize("text", ["[]", "{}", '{"entities": [], "relations": []}', "  "])
def test_a_list_that_is_empty_is_no_passage(text: str):
    result = CallToolResult(content=[TextContent(type="text", text=text)])
    assert rows_of_result(result, title="t", query="q", most_chars=100) == []


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
