"""Four questions as graphs of searches: what may be searched when, what a search gives, and what the answer is.

A search gives a value that is made of its query, and a query holds the values of the searches that it needs: only who
really waited for them has the right answer.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from zlib import crc32

SEARCH_SECONDS: Final = 0.1

TASKS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "chain": {"A": (), "B": ("A",)},
    "pair": {"A": (), "B": ()},
    "fan": {"A": (), "B": ("A",), "C": ("A",), "D": ("A",), "E": ("A",)},
    "diamond": {"A": (), "B": ("A",), "C": ("A",), "D": ("B", "C")},
}
"""Name → each search and those that it needs."""
NAMES: Final[Mapping[str, str]] = {
    "chain": "a two-hop chain",
    "pair": "a pair of independent searches",
    "fan": "a search, and four that need it",
    "diamond": "a diamond",
}

_QUESTION: Final = re.compile(r"Solve (\w+) (m\d+)\.")
_FOUND: Final = re.compile(r"\b([A-E]) of (\w+) (m\d+)(?: given [0-9a-f ]+?)? is ([0-9a-f]{8})\b")
Values = dict[str, str]


def question_of(task: str, marker: str) -> str:
    return f"Solve {task} {marker}."


def task_in(text: str) -> tuple[str, str]:
    """Task and marker of the question in a text.

    Raises:
        ValueError: there is none.
    """
    if found := _QUESTION.search(text):
        return found[1], found[2]
    raise ValueError(f"no question is in {text[:80]!r}")


def query_of(task: str, marker: str, node: str, values: Mapping[str, str]) -> str:
    """A search; `values` may hold `#A` for what A will give."""
    parents = TASKS[task][node]
    given = f" given {' '.join(values[parent] for parent in parents)}" if parents else ""
    return f"{node} of {task} {marker}{given}"


def passage_of(query: str) -> str:
    """What a search gives."""
    return f"{query} is {_value(query)}."


def found_in(text: str, task: str, marker: str) -> Values:
    """The values in a text, as far as they are this question's."""
    return {node: value for node, of, at, value in _FOUND.findall(text) if (of, at) == (task, marker)}


def ready(task: str, values: Mapping[str, str]) -> list[str]:
    """Searches whose needs are met, and which were not made yet."""
    return [
        node
        for node, parents in TASKS[task].items()
        if node not in values and all(parent in values for parent in parents)
    ]


def answer_of(task: str, values: Mapping[str, str]) -> str:
    """The values of the searches that no other one needs."""
    needed = {parent for parents in TASKS[task].values() for parent in parents}
    return " ".join(values[node] for node in TASKS[task] if node not in needed)


def solution(task: str, marker: str) -> str:
    """The answer as it must be."""
    values: Values = {}
    while nodes := ready(task, values):
        values |= {node: _value(query_of(task, marker, node, values)) for node in nodes}
    return answer_of(task, values)


def longest_path_seconds(task: str) -> float:
    depth: dict[str, int] = {}
    for node, parents in TASKS[task].items():
        depth[node] = 1 + max((depth[parent] for parent in parents), default=0)
    return SEARCH_SECONDS * max(depth.values())


def lines(queries: Sequence[tuple[str, str]]) -> str:
    """A plan as Cairn's protocol spells it."""
    return "\n".join(f"{node}: {query} (web)" for node, query in queries)


def _value(query: str) -> str:
    return f"{crc32(query.encode()):08x}"
