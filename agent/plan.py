"""A search plan: queries as nodes, "needs the result of" as edges. (The parser comes with it.)"""

from agent.evidence import Frozen


class Filter(Frozen):
    """A condition on what a node may find: after|before a date, site a host, lang a code."""

    name: str
    value: str


class Node(Frozen):
    """One query to one source."""

    id: str
    query: str
    source: str
    parents: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()


class Plan(Frozen):
    """Nodes in an order in which they can run: parents come before children."""

    nodes: tuple[Node, ...]
