"""Which tool of an MCP server is searched, and which of its arguments gets the query. Pure.

The settings say it, or the tool's schema where that leaves no choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from agent.errors import SourceError, nearest
from agent.sources.live.reading import member, text_of

QUERY_NAMES: Final = ("query", "q", "question", "search", "search_query", "text", "input", "prompt", "pattern")
"""Arguments that get the query where several could, the first of them that there is."""
_SHOWN: Final = 12
"""Names in one sentence."""


@dataclass(frozen=True)
class QueryCall:
    """A call with room for a query."""

    tool: str
    query: str
    """The argument."""
    limit: str
    """The argument for the number of results; empty: none."""
    fixed: Mapping[str, Any]
    title: str
    """Of the tool, for people."""

    def arguments(self, query: str, limit: int) -> dict[str, Any]:
        return {**self.fixed, **({self.limit: limit} if self.limit else {}), self.query: query}


def chosen_call(
    tools: Sequence[Any], *, name: str, tool: str, query: str, limit: str, fixed: Mapping[str, Any]
) -> QueryCall:
    """The call that the settings describe.

    Args:
        tools: that the server offers, as the SDK gives them.
        name: of the source, for sentences.
        tool: the tool; empty: the only one, or the only one whose name says that it searches.
        query: the argument that gets the query; empty: found in the schema.
        limit: the argument that gets the number of results; empty: none.
        fixed: the other arguments.

    Raises:
        SourceError: there is no such tool or argument, or a choice that the settings must make.
    """
    found = _tool(tools, name=name, wanted=tool)
    schema = member({"schema": found.input_schema}, "schema")
    properties = member(schema, "properties")
    for argument in filter(None, (query, limit, *fixed)):
        if properties and argument not in properties and schema.get("additionalProperties", True) is False:
            raise _wrong(
                f"the tool {found.name!r} of {name} has no argument {argument!r}{nearest(argument, properties)}"
            )
    argument = query or _query(found.name, schema, properties, name=name, taken={limit, *fixed})
    return QueryCall(found.name, argument, limit, fixed, text_of(found.title) or found.name)


def _tool(tools: Sequence[Any], *, name: str, wanted: str) -> Any:
    there = [tool.name for tool in tools]
    if wanted:
        named = [tool for tool in tools if tool.name == wanted]
        if not named:
            raise _wrong(f"{name} has no tool {wanted!r}{nearest(wanted, there)}; it has: {_listed(there)}")
        return named[0]
    searching = [tool for tool in tools if "search" in tool.name.lower()]
    if len(tools) == 1 or len(searching) == 1:
        return tools[0] if len(tools) == 1 else searching[0]
    if not tools:
        raise _wrong(f"{name} has no tools")
    raise _wrong(f"{name} has several tools; name one with tool = … in [mcp.{name}]: {_listed(there)}")


def _query(tool: str, schema: Mapping[str, Any], properties: Mapping[str, Any], *, name: str, taken: set[str]) -> str:
    """The one argument that a query can be."""
    texts = [one for one, kind in properties.items() if one not in taken and _is_text(kind)]
    listed: Any = schema.get("required")
    required = [one for one in texts if isinstance(listed, list) and one in listed]
    for candidates in (required, texts):
        if len(candidates) == 1:
            return candidates[0]
        if usual := [one for one in QUERY_NAMES if one in candidates]:
            return usual[0]
    fix = f"name it with query = … in [mcp.{name}]"
    raise _wrong(f"no argument of the tool {tool!r} of {name} is surely the query; {fix}: {_listed(list(properties))}")


def _is_text(kind: Any) -> bool:
    """Whether a schema takes a text."""
    if not isinstance(kind, dict):
        return False
    schema = cast(dict[str, Any], kind)
    kinds: Any = schema.get("type")
    choices = cast(list[Any], schema.get("anyOf")) if isinstance(schema.get("anyOf"), list) else []
    named = kinds == "string" or (isinstance(kinds, list) and "string" in kinds)
    return "enum" not in schema and (named or any(map(_is_text, choices)))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(name[:60] for name in names[:_SHOWN]) or "none") + more


def _wrong(why: str) -> SourceError:
    return SourceError(why, kind="bad_query")


def first_text(result: Any) -> str:
    """What a result says first, on one line."""
    texts = (text_of(block.text) for block in result.content if block.type == "text")
    return " ".join(next(filter(None, texts), "").split())
