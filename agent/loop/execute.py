"""Run a plan: every node as soon as its own parents are done."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping

from agent.errors import SourceError
from agent.evidence import Passage
from agent.plan import Filter, Node, Plan
from agent.sources.asked import asked_for, what_for
from agent.sources.base import Hits, Source, ask
from agent.trace import Searched, SearchFailed

Found = dict[str, list[Passage]]
"""Node id → what it found, best first; a node that failed is not there."""

Fill = Callable[[Node, Found], Awaitable[Node | None]]
"""Is given a node whose parents are done, and what was found until then; gives the node as it is asked, or None."""

_Call = tuple[str, str, tuple[Filter, ...]]


async def execute(
    plan: Plan,
    sources: Mapping[str, Source],
    *,
    round: int,
    limit: int,
    seconds: float,
    emit: Callable[[Searched | SearchFailed], None],
    fill: Fill | None = None,
) -> Found:
    """Run every node, telling `emit` as each one ends. Children of a failed or skipped node run too.

    Args:
        plan: what to run; every source that it names is in `sources`.
        sources: the sources by name.
        round: number of the search round, for the steps.
        limit: passages a node.
        seconds: how long a node may take.
        emit: is told of each node's step the moment it ends.
        fill: finishes a node's query before it is asked, or skips the node; several at the same time.

    Returns:
        What each node found, in the plan's order. Nodes with the same source, query and filters share one call.

    Raises:
        AgentError: what `fill` raised; all that was running is cancelled then.
    """
    return await _Execution(plan, sources, round=round, limit=limit, seconds=seconds, emit=emit, fill=fill).run()


class _Execution:
    def __init__(
        self,
        plan: Plan,
        sources: Mapping[str, Source],
        *,
        round: int,
        limit: int,
        seconds: float,
        emit: Callable[[Searched | SearchFailed], None],
        fill: Fill | None,
    ) -> None:
        self._plan = plan
        self._sources = sources
        self._round = round
        self._limit = limit
        self._seconds = seconds
        self._emit = emit
        self._fill = fill
        self._waits_for = {node.id: len(node.parents) for node in plan.nodes}
        self._children: dict[str, list[Node]] = {node.id: [] for node in plan.nodes}
        for node in plan.nodes:
            for parent in node.parents:
                self._children[parent].append(node)
        self._calls: dict[_Call, asyncio.Future[Hits]] = {}
        self._found: Found = {}

    async def run(self) -> Found:
        try:
            async with asyncio.TaskGroup() as group:
                for node in self._plan.nodes:
                    if not node.parents:
                        group.create_task(self._node(node, group))
        except BaseExceptionGroup as error:
            raise error.exceptions[0] from None  # the others were cancelled by it
        return {node.id: self._found[node.id] for node in self._plan.nodes if node.id in self._found}

    async def _node(self, node: Node, group: asyncio.TaskGroup) -> None:
        """Run one node, then start each child that waited for it alone."""
        filled = await self._fill(node, self._found) if self._fill else node
        if filled is not None:
            await self._search(filled)
        for child in self._children[node.id]:
            self._waits_for[child.id] -= 1
            if not self._waits_for[child.id]:
                group.create_task(self._node(child, group))

    async def _search(self, node: Node) -> None:
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            hits = await self._ask_once(node)
        except SourceError as error:
            step = SearchFailed(
                round=self._round,
                node=node.id,
                source=node.source,
                query=node.query,
                why=str(error),
                error=error.kind,
                took=clock() - started,
                failures=error.failures,
            )
        else:
            self._found[node.id] = passages = [_found_by(node, n, p) for n, p in enumerate(hits, start=1)]
            step = Searched(
                round=self._round,
                node=node.id,
                source=node.source,
                query=node.query,
                passages=tuple(passages),
                took=clock() - started,
                note="; ".join(hits.notes),
                backend=hits.backend,
                cached=hits.cached,
                credits=hits.credits,
                usd=hits.usd,
                failures=hits.failures,
            )
        self._emit(step)

    async def _ask_once(self, node: Node) -> Hits:
        """Ask, unless an equal query was asked or is on its way: then share what it gives, which is paid once."""
        call = (node.source, node.query, node.filters)
        if shared := self._calls.get(call):
            hits = await asyncio.shield(shared)
            return Hits(hits, backend=hits.backend, notes=hits.notes, cached=hits.cached)
        self._calls[call] = asyncio.get_running_loop().create_future()
        try:
            with asked_for(dataclasses.replace(what_for(), entities=node.entities, relations=node.relations)):
                hits = await ask(
                    self._sources[node.source],
                    node.query,
                    limit=self._limit,
                    seconds=self._seconds,
                    filters=node.filters,
                )
        except SourceError as error:
            self._calls[call].set_exception(error)
            self._calls[call].exception()  # it was seen: nobody need share a failure
            raise
        self._calls[call].set_result(hits)
        return hits


def _found_by(node: Node, rank: int, passage: Passage) -> Passage:
    return passage.model_copy(update={"node": node.id, "rank": passage.rank or rank})
