"""How close the executor comes to a plan's longest path, beside running its levels, or its nodes, one after the other.

Searches only sleep, so several plans may run at once without being in each other's way: what is measured is ours.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.evidence import Passage
from agent.loop.execute import execute
from agent.plan import Node, Plan
from agent.sources.base import SearchRequest, SearchResult
from agent.trace import Searched, SearchFailed

BOUND_P50: Final = 1.03
BOUND_P99: Final = 1.10

_NODES: Final = (2, 12)
_LATENCY_SECONDS: Final = (0.020, 0.200)
_EDGE_SHARE: Final = 0.3
"""How probable it is that a node needs an earlier one."""


@dataclass(frozen=True)
class ExecutorFigures:
    """Wall time / longest path, over all plans."""

    plans: int
    at_once: int
    ratio_p50: float
    ratio_p99: float
    ratio_max: float
    levels_p50: float
    levels_p99: float
    serial_p50: float
    serial_p99: float
    longest_path_ms_p50: float
    seconds: float

    @property
    def holds(self) -> bool:
        return self.ratio_p50 <= BOUND_P50 and self.ratio_p99 <= BOUND_P99


@dataclass(frozen=True)
class TimedPlan:
    """A plan, and the seconds that each of its queries takes."""

    plan: Plan
    latencies: Mapping[str, float]

    @property
    def longest_path(self) -> float:
        ends: dict[str, float] = {}
        for node in self.plan.nodes:
            ends[node.id] = self.latencies[node.query] + max((ends[parent] for parent in node.parents), default=0.0)
        return max(ends.values())

    @property
    def levels(self) -> list[Plan]:
        """The plan's nodes by their depth, each level a plan of its own."""
        depth: dict[str, int] = {}
        for node in self.plan.nodes:
            depth[node.id] = 1 + max((depth[parent] for parent in node.parents), default=0)
        levels: list[list[Node]] = [[] for _ in range(max(depth.values()))]
        for node in self.plan.nodes:
            levels[depth[node.id] - 1].append(node.model_copy(update={"parents": ()}))
        return [Plan(nodes=tuple(nodes)) for nodes in levels]

    @property
    def singles(self) -> list[Plan]:
        return [Plan(nodes=(node.model_copy(update={"parents": ()}),)) for node in self.plan.nodes]


class Sleeping:
    """A source that takes as long as its query says."""

    def __init__(self, latencies: Mapping[str, float]) -> None:
        self._latencies = latencies

    async def search(self, request: SearchRequest) -> SearchResult:
        await asyncio.sleep(self._latencies[request.query])
        return SearchResult((Passage(id=request.query, source="web", title=request.query, text=request.query),))


def random_case(rng: random.Random) -> TimedPlan:
    """2 to 12 nodes; a node needs each earlier one with the same probability; 20 to 200 ms a search."""
    nodes: list[Node] = []
    for number in range(rng.randint(*_NODES)):
        parents = tuple(node.id for node in nodes if rng.random() < _EDGE_SHARE)
        nodes.append(Node(id=f"N{number}", query=f"query {number}", source="web", parents=parents))
    return TimedPlan(Plan(nodes=tuple(nodes)), {node.query: rng.uniform(*_LATENCY_SECONDS) for node in nodes})


async def measure(
    *, plans: int = 500, at_once: int = 8, seed: int = 0, progress: Callable[[int], None] = lambda done: None
) -> ExecutorFigures:
    """Run random plans in three ways.

    Args:
        plans: how many.
        at_once: how many of them run at the same time.
        seed: of the plans.
        progress: gets how many of all runs, three for each plan, are done.
    """
    clock = asyncio.get_running_loop().time
    started = clock()
    rng = random.Random(seed)
    cases = [random_case(rng) for _ in range(plans)]
    ways: list[Callable[[TimedPlan], Awaitable[float]]] = [
        lambda case: _timed(case, [case.plan]),
        lambda case: _timed(case, case.levels),
        lambda case: _timed(case, case.singles),
    ]
    ratios: list[list[float]] = []
    for way in ways:
        before = plans * len(ratios)
        ratios.append(await _all(cases, way, at_once, lambda done, before=before: progress(before + done)))
    ours, levels, serial = ratios
    return ExecutorFigures(
        plans=plans,
        at_once=at_once,
        ratio_p50=_quantile(ours, 0.50),
        ratio_p99=_quantile(ours, 0.99),
        ratio_max=max(ours),
        levels_p50=_quantile(levels, 0.50),
        levels_p99=_quantile(levels, 0.99),
        serial_p50=_quantile(serial, 0.50),
        serial_p99=_quantile(serial, 0.99),
        longest_path_ms_p50=1000 * _quantile([case.longest_path for case in cases], 0.50),
        seconds=clock() - started,
    )


async def _all(
    cases: Sequence[TimedPlan],
    way: Callable[[TimedPlan], Awaitable[float]],
    at_once: int,
    progress: Callable[[int], None],
) -> list[float]:
    """Ratios in the order of `cases`."""
    ratios = [0.0] * len(cases)
    left = iter(enumerate(cases))
    done = 0

    async def work() -> None:
        nonlocal done
        for at, case in left:
            ratios[at] = await way(case) / case.longest_path
            done += 1
            progress(done)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())
    return ratios


async def _timed(case: TimedPlan, parts: Sequence[Plan]) -> float:
    """Seconds to run the parts one after the other."""
    sources = {"web": Sleeping(case.latencies)}
    steps: list[Searched | SearchFailed] = []
    clock = asyncio.get_running_loop().time  # which tests let jump, so that a ratio is exact
    started = clock()
    for part in parts:
        await execute(part, sources, round=1, limit=1, seconds=10, emit=steps.append)
    return clock() - started


def _quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all values do not pass."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]
