"""Plans that are function calls: `{"name": "search", "arguments": {"query": ["…", "…"]}}`, one or several."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from agent.errors import PlanError
from agent.plan.json import as_list, as_object, read_values, strings
from agent.plan.text import DraftPlan, DraftQuery, checked

if TYPE_CHECKING:
    from agent.protocols.base import Tool

_FORM: Final = '{"name": "…", "arguments": {…}}'


def read_calls(text: str, *, tools: "Mapping[str, Tool]", sources: Collection[str]) -> DraftPlan:
    """Read calls that follow one another; a list in the argument of a call is one query each.

    Arguments that the tool does not name are left out: a goal or a number of results means nothing here.

    Raises:
        PlanError: it is no call, or it calls what there is not; the sentence says what there is.
    """
    drafts = DraftPlan()
    try:
        values = list(read_values(text))
    except PlanError as error:
        raise PlanError(f"{error}; write {_FORM}") from error
    for value, written in values:
        for call in as_list(value):
            drafts.queries += _drafts(call, written, tools=tools, sources=sources)
    return drafts


def _drafts(call: Any, written: str, *, tools: "Mapping[str, Tool]", sources: Collection[str]) -> Iterator[DraftQuery]:
    name, arguments = _call(call, written)
    there = ", ".join(sorted(tool for tool, means in tools.items() if means.source in sources)) or "none"
    tool = tools.get(name)
    if tool is None:
        raise PlanError(f"{name!r} is no function; there are: {there}")
    if tool.source not in sources:
        raise PlanError(f"the function {name!r} is not connected here; there are: {there}")
    queries = strings(arguments.get(tool.argument), tool.argument)
    if not queries:
        raise PlanError(f"{name!r} was called without {tool.argument!r}; write what to search for there")
    for query in queries:
        yield DraftQuery(query, checked(query, query), source=tool.source, written=written)


def _call(call: Any, written: str) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a call; arguments that are JSON in a string are read too."""
    fields = as_object(call) or {}
    name = fields.get("name")
    if not isinstance(name, str):
        raise PlanError(f"{written[:60]!r} is no function call; write {_FORM}")
    given = fields.get("arguments", {})
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except json.JSONDecodeError as error:
            raise PlanError(f"the arguments of {name!r} are no JSON object; write {_FORM}") from error
    arguments = as_object(given)
    if arguments is None:
        raise PlanError(f"the arguments of {name!r} are no JSON object; write {_FORM}")
    return name, arguments
