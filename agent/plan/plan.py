"""A search plan: queries as nodes, "needs the result of" as edges. What cannot run is a `PlanError`."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, count
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Final

from agent.errors import PlanError
from agent.evidence import Frozen
from agent.plan.graph import DOCUMENTS, read_graph
from agent.plan.json import as_list, as_object, read_values, strings
from agent.plan.text import ID, DraftEdge, DraftPlan, DraftQuery, checked, read_lines, read_queries, read_query

if TYPE_CHECKING:
    from agent.protocols.base import TextProtocol, Tool


_FORM: Final = '{"name": "…", "arguments": {…}}'

EVERY_SOURCE: Final = "all"
"""Name of the source that searches every source."""
UNNAMED: Final = frozenset({DOCUMENTS})
"""Sources that no plan may name: protocols ask them by themselves."""

_ALIASES: Final = {
    "general": EVERY_SOURCE,
    "any": EVERY_SOURCE,
    "internet": "web",
    "wikipedia": "wiki",
    "paper": "arxiv",
    "papers": "arxiv",
    "graph": "kg",
}
_REFERENCE: Final = re.compile(rf"(?<![\w#&])#({ID})(?!\w)")


class Filter(Frozen):
    """A condition on what a node may find.

    after|before a date (2026, 2026-01 or 2026-01-31), site|not a host, recent day|week|month|year, lang a code of two
    letters, kind general|news|science|finance.
    """

    name: str
    value: str


class Node(Frozen):
    """One query to one source."""

    id: str
    query: str
    source: str
    parents: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()
    entities: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    """What a structured query wants of a graph; its words are in `query` too."""
    written: str = ""
    """The function call that it is from, where a protocol's environment repeats it."""


class Plan(Frozen):
    """Nodes in an order in which they can run: parents come before children."""

    nodes: tuple[Node, ...]
    dropped: tuple[str, ...] = ()
    """Ids of queries that were left out, in a protocol that drops unknown sources or cuts plans."""

    @property
    def references(self) -> tuple[tuple[str, str], ...]:
        """Each (child, parent) where the child's query holds `#parent`: the answer that the parent will find."""
        return tuple(
            (node.id, ref) for node in self.nodes for ref in _REFERENCE.findall(node.query) if ref in node.parents
        )


def parse_plan(text: str, *, protocol: "TextProtocol", sources: Collection[str]) -> Plan:
    """Read the text between the search tags.

    Args:
        text: what the policy wrote.
        protocol: says how plans are spelled, and how many queries one may hold.
        sources: names of the sources there are.

    Raises:
        PlanError: the plan cannot run; the sentence names the line and the fix.
    """
    named = [name for name in sources if name not in UNNAMED]
    drafts = _read(text, protocol=protocol, sources=sources, named=named)
    if not drafts.queries:
        edge = f"there is only {drafts.edges[0].line!r}; " if drafts.edges else ""
        how = ", one a line" if protocol.plan == "lines" else ""
        raise PlanError(f"the plan holds no query; {edge}write at least one query{how}")
    if len(drafts.queries) > protocol.max_queries and not protocol.cut_queries:
        raise PlanError(f"a plan has at most {protocol.max_queries} queries; this one has {len(drafts.queries)}")
    nodes, dropped = _nodes(drafts, protocol=protocol, sources=named if protocol.plan == "lines" else sources)
    parents = _parents(drafts.edges, nodes=nodes, dropped=dropped, refer=protocol.plan == "lines")
    order = _topological(parents)
    ordered = (nodes[name].model_copy(update={"parents": tuple(parents[name])}) for name in order)
    return Plan(nodes=tuple(ordered), dropped=dropped)


def _read(text: str, *, protocol: "TextProtocol", sources: Collection[str], named: Collection[str]) -> DraftPlan:
    match protocol.plan:
        case "lines":
            return read_lines(text, sources=_known(named) if protocol.sources else ())
        case "queries":
            return read_queries(text, separator=protocol.separator)
        case "query":
            return read_query(text)
        case "graph":
            return read_graph(text, sources=sources)
        case "calls":
            return read_calls(text, tools=protocol.tools, sources=sources)


def _known(sources: Collection[str]) -> list[str]:
    """Every name that means a source."""
    return [*sources, *(alias for alias, name in _ALIASES.items() if name in sources)]


def _nodes(
    drafts: DraftPlan, *, protocol: "TextProtocol", sources: Collection[str]
) -> tuple[dict[str, Node], tuple[str, ...]]:
    nodes: dict[str, Node] = {}
    names = _names(drafts.queries)
    dropped = names[protocol.max_queries :]
    for name, draft in zip(names, drafts.queries[: protocol.max_queries], strict=False):
        source = _source(draft, sources=sources)
        if source is not None:
            nodes[name] = _node(name, draft, source)
        elif protocol.unknown_source == "drop":
            dropped.append(name)
        else:
            raise PlanError(_unknown_source(draft, sources=sources))
    if not nodes:
        raise PlanError(_unknown_source(drafts.queries[0], sources=sources))
    return nodes, tuple(dropped)


def _node(name: str, draft: DraftQuery, source: str) -> Node:
    return Node(
        id=name,
        query=draft.query,
        source=source,
        filters=tuple(Filter(name=key, value=value) for key, value in draft.filters),
        entities=draft.entities,
        relations=draft.relations,
        written=draft.written,
    )


def _names(drafts: Collection[DraftQuery]) -> list[str]:
    """The id of each query; those without one get A, B, C … that are free, then A1, B1 … without an end."""
    taken: set[str] = set()
    for draft in drafts:
        if draft.id is not None and draft.id in taken:
            raise PlanError(f"two queries have the id {draft.id!r}; give each its own")
        taken.add(draft.id or "")
    spare = (f"{letter}{number}" for number in count(1) for letter in ascii_uppercase)
    free = (name for name in chain(ascii_uppercase, spare) if name not in taken)
    return [draft.id or next(free) for draft in drafts]


def _source(draft: DraftQuery, *, sources: Collection[str]) -> str | None:
    """The configured source that a query names; None if it names an unknown one."""
    if draft.source is None:
        return EVERY_SOURCE if EVERY_SOURCE in sources else next(iter(sources), None)
    folded = {name.casefold(): name for name in sources}
    named = draft.source.casefold()
    return folded.get(named) or folded.get(_ALIASES.get(named, ""))


def _unknown_source(draft: DraftQuery, *, sources: Collection[str]) -> str:
    there = ", ".join(sorted(sources)) or "none"
    if draft.source is None:
        return "there is no source to search"
    return (
        f"line {draft.line!r} asks {draft.source!r}, which is no source; there are: {there}"
        f" (if '({draft.source})' belongs to the query, write the source behind it)"
    )


def _parents(
    edges: Collection[DraftEdge], *, nodes: Mapping[str, Node], dropped: Collection[str], refer: bool
) -> dict[str, list[str]]:
    """Each node's parents in the plan's order: from its edges, and where plans `refer`, from `#A` in its query."""
    found: dict[str, set[str]] = {name: set() for name in nodes}
    names: defaultdict[str, list[str]] = defaultdict(list)
    for name in (*nodes, *dropped):
        names[name.casefold()].append(name)
    for edge in edges:
        parents = {_end(edge, written, names=names) for written in edge.parents}
        children = {_end(edge, written, names=names) for written in edge.children}
        for child in children & nodes.keys():
            found[child] |= parents & nodes.keys()
    for name, node in nodes.items() if refer else ():
        found[name] |= {reference for reference in _REFERENCE.findall(node.query) if reference in nodes}
    return {name: [other for other in nodes if other in found[name]] for name in nodes}


def _end(edge: DraftEdge, written: str, *, names: Mapping[str, Sequence[str]]) -> str:
    """The id that is meant. `names` has the ids by their folded case, which matters where only it differs."""
    close = names.get(written.casefold(), ())
    if written in close:
        return written
    if len(close) != 1:
        raise PlanError(f"edge {edge.line!r} names {written!r}, which is no query of this plan; write one for it")
    return close[0]


def _topological(parents: Mapping[str, Collection[str]]) -> list[str]:
    """Parents before children; among those that are ready, the plan's own order."""
    order: list[str] = []
    while len(order) < len(parents):
        ready = (name for name in parents if name not in order and all(parent in order for parent in parents[name]))
        name = next(ready, None)
        if name is None:
            circle = _circle({name: parents[name] for name in parents if name not in order})
            raise PlanError(f"the plan has a circle: {' -> '.join(circle)}; take one of its edges out")
        order.append(name)
    return order


def _circle(parents: Mapping[str, Collection[str]]) -> list[str]:
    """Walk from child to parent until a node comes again; every node here has a parent that is here too."""
    walk = [next(iter(parents))]
    while walk.count(walk[-1]) < 2:
        walk.append(next(parent for parent in parents[walk[-1]] if parent in parents))
    return walk[walk.index(walk[-1]) :][::-1]


def read_calls(text: str, *, tools: "Mapping[str, Tool]", sources: Collection[str]) -> DraftPlan:
    """Read calls that follow one another; a list in the argument of a call is one query each.

    A plan may be `{"name": "search", "arguments": {"query": ["…", "…"]}}`, one or several.

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
        except (ValueError, RecursionError) as error:
            raise PlanError(f"the arguments of {name!r} are no JSON object; write {_FORM}") from error
    arguments = as_object(given)
    if arguments is None:
        raise PlanError(f"the arguments of {name!r} are no JSON object; write {_FORM}")
    return name, arguments
