"""What the environment must have said for a round, rendered again from a protocol's templates and a trace's steps.

Like `tests.invariants`, which compares with it, it shares no line with the loop.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from agent.checks.words import FUNCTION
from agent.evidence import Passage
from agent.plan import Node
from agent.protocols.base import TextProtocol
from agent.sanitize.sanitize import sanitize
from agent.trace import Filled, Gathered, Planned, Searched, SearchFailed, Trace


def gathered(step: Gathered, trace: Trace, protocol: TextProtocol) -> str:
    of_round = [other for other in trace.steps if getattr(other, "round", 0) == step.round]
    filled = {other.node: safe(other.query, protocol) for other in of_round if isinstance(other, Filled)}
    lines = [(passage.node, _line(passage, filled, protocol)) for passage in step.passages]
    failed = [other for other in of_round if isinstance(other, SearchFailed)]
    lines += [(f.node, safe(protocol.failed.format(node=f.node, source=f.source), protocol)) for f in failed]
    if protocol.each:
        (plan,) = (other.plan for other in of_round if isinstance(other, Planned))
        found_by = {n.id: _answer_to(n, [line for own, line in lines if own == n.id], protocol) for n in plan.nodes}
        if not protocol.each_call:
            return wrapped(list(found_by.values()), protocol, joiner=protocol.each_joiner)
        return wrapped(_calls(plan.nodes, found_by, protocol), protocol, joiner=protocol.call_joiner)
    found = any(other.passages for other in of_round if isinstance(other, Searched))
    if found and not lines and (named := _named(step, trace, protocol)):
        reminded = wrapped([_line(passage, {}, protocol) for passage in named], protocol)
        ended = trace.stopped
        if ended is None or (ended.budget != "context" and ended.reason != "engine"):
            return reminded  # else there may have been no room for it; a script ends before the budget does
        there = any(trace.segments[at].text == reminded for at in step.segments)
        return reminded if there else _nothing_new(protocol)
    said = [line for _, line in lines] or ([protocol.repeated] if found else [protocol.nothing])
    return wrapped(said, protocol)


def _nothing_new(protocol: TextProtocol) -> str:
    return wrapped([protocol.repeated], protocol)


def _named(step: Gathered, trace: Trace, protocol: TextProtocol) -> list[Passage]:
    """The passages of earlier rounds that were found again, and whose titles the queries name word by word."""
    earlier = [other for other in trace.steps if isinstance(other, Gathered) and other.round < step.round]
    shown = {(p.url or p.id, p.text): p for other in earlier for p in other.passages}
    of_round = [other for other in trace.steps if getattr(other, "round", 0) == step.round]
    filled = {other.node: other.query for other in of_round if isinstance(other, Filled)}
    (plan,) = (other.plan for other in of_round if isinstance(other, Planned))
    queries = {node.id: filled.get(node.id, node.query) for node in plan.nodes}
    found = {other.node: other.passages for other in of_round if isinstance(other, Searched)}
    lists = [[p for p in found.get(node, ()) if _names(query, p.title)] for node, query in queries.items()]
    ranked = [p for rank in zip_longest(*lists) for p in rank if p and (p.url or p.id, p.text) in shown]
    named = dict.fromkeys((p.url or p.id, p.text) for p in ranked)
    return [shown[identity] for identity in named][: protocol.reminders]


def _names(query: str, title: str) -> bool:
    said, wanted = (
        {word[:4] for word in re.findall(r"\w+", text.casefold()) if word not in FUNCTION}
        for text in (query, title.split(" › ")[0])
    )
    return bool(wanted) and wanted <= said


def _calls(nodes: Sequence[Node], found_by: Mapping[str, str], protocol: TextProtocol) -> list[str]:
    """What each function call found: its queries are in a row, and a call begins again with its first one."""
    starts = [
        at
        for at, node in enumerate(nodes)
        if not at or node.written != nodes[at - 1].written or node.query == _first(nodes, at).query
    ]
    calls = [nodes[start:end] for start, end in zip(starts, [*starts[1:], len(nodes)], strict=True)]
    return [
        protocol.each_call.format(
            passages=protocol.each_joiner.join(found_by[node.id] for node in call),
            written=safe(call[0].written, protocol),
        )
        for call in calls
    ]


def _first(nodes: Sequence[Node], at: int) -> Node:
    """The first of the nodes before this one that were written as it was."""
    while at and nodes[at - 1].written == nodes[at].written:
        at -= 1
    return nodes[at]


def _answer_to(node: Node, lines: Sequence[str], protocol: TextProtocol) -> str:
    query, written = safe(node.query, protocol), safe(node.written, protocol)
    return protocol.each.format(
        passages=protocol.joiner.join(lines) or protocol.nothing.replace("{query}", query),
        count=len(lines),
        written=written,
        query=query,
        query_json=json.dumps(query, ensure_ascii=False),
    )


def _line(passage: Passage, filled: Mapping[str, str], protocol: TextProtocol) -> str:
    fields = ("source", "title", "text", "url", "date")
    said = {name: safe(_lines(getattr(passage, name), name, protocol), protocol) for name in fields}
    date, title = said.pop("date"), said["title"]
    return protocol.passage.format(
        **said,
        **{f"{name}_json": json.dumps(value, ensure_ascii=False) for name, value in said.items()},
        number=passage.number,
        node=f"{passage.node} ({filled[passage.node]})" if passage.node in filled else passage.node,
        query="",
        date=protocol.dated.format(date=date) if date else "",
        head=protocol.head.format(title=title) if title else "",
    )


def _lines(text: str, name: str, protocol: TextProtocol) -> str:
    """Under our own formats only the loop begins a line without blanks."""
    if protocol.lines == "kept":
        return text
    return re.sub(r"\s+", lambda run: _instead(run, name) if len(f"a{run[0]}b".splitlines()) > 1 else run[0], text)


def _instead(run: re.Match[str], name: str) -> str:
    if run.start() == 0 or run.end() == len(run.string):
        return ""
    return "\n  " if name == "text" else " "


def wrapped(lines: Sequence[str], protocol: TextProtocol, *, joiner: str | None = None) -> str:
    before, _, after = protocol.wrapper.partition("{passages}")
    return before + (protocol.joiner if joiner is None else joiner).join(lines) + after


def safe(text: str, protocol: TextProtocol) -> str:
    return sanitize(text, protocol.tag_names)
