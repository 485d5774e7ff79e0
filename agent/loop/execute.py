"""Run a plan: every node as soon as its own parents are done."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from agent.errors import SourceError
from agent.evidence import Passage
from agent.plan import Filter, Node, Plan
from agent.sources.base import SearchRequest, SearchResult, Source, ask
from agent.trace import Searched, SearchFailed

Found = dict[str, list[Passage]]
"""Node id → what it found, best first; a node that failed is not there."""

Fill = Callable[[Node, Found], Awaitable[Node | None]]
"""Is given a node whose parents are done, and what was found until then; gives the node as it is searched, or None."""

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
    question: str = "",
) -> Found:
    """Run every node, and call `emit` as each one ends. Children of a failed or skipped node run too.

    Args:
        plan: what to run; every source that it names is in `sources`.
        sources: the sources by name.
        round: number of the search round, for the steps.
        limit: passages a node.
        seconds: how long a node may take.
        emit: takes each node's step the moment it ends.
        fill: finishes a node's query before the search, or skips the node; several at the same time.
        question: the user's, for sources that choose among passages.

    Returns:
        What each node found, in the plan's order. Nodes with the same source, query and filters share one call.

    Raises:
        AgentError: what `fill` raised; all that was running is cancelled then.
    """
    run = _Execution(plan, sources, round, limit, seconds, emit, fill, question)
    return await run.run()


@dataclass(eq=False)
class _Execution:
    plan: Plan
    sources: Mapping[str, Source]
    round: int
    limit: int
    seconds: float
    emit: Callable[[Searched | SearchFailed], None]
    fill: Fill | None
    question: str

    def __post_init__(self) -> None:
        self._waits_for = {node.id: len(node.parents) for node in self.plan.nodes}
        self._children: dict[str, list[Node]] = {node.id: [] for node in self.plan.nodes}
        for node in self.plan.nodes:
            for parent in node.parents:
                self._children[parent].append(node)
        self._calls: dict[_Call, asyncio.Future[SearchResult]] = {}
        self._found: Found = {}

    async def run(self) -> Found:
        try:
            async with asyncio.TaskGroup() as group:
                for node in self.plan.nodes:
                    if not node.parents:
                        group.create_task(self._node(node, group))
        except BaseExceptionGroup as error:
            raise error.exceptions[0] from None  # the others were cancelled by it
        return {node.id: self._found[node.id] for node in self.plan.nodes if node.id in self._found}

    async def _node(self, node: Node, group: asyncio.TaskGroup) -> None:
        """Run one node, then start each child that waited for it alone."""
        filled = await self.fill(node, self._found) if self.fill else node
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
            result = await self._search_once(node)
        except SourceError as error:
            step = SearchFailed(
                round=self.round,
                node=node.id,
                source=node.source,
                query=node.query,
                why=str(error),
                error=error.kind,
                took=clock() - started,
                failures=error.failures,
                credits=error.credits,
                usd=error.usd,
            )
        else:
            self._found[node.id] = passages = [_found_by(node, n, p) for n, p in enumerate(result.passages, start=1)]
            step = Searched(
                round=self.round,
                node=node.id,
                source=node.source,
                query=node.query,
                passages=tuple(passages),
                took=clock() - started,
                note="; ".join(result.notes),
                backend=result.backend,
                cached=result.cached,
                credits=result.credits or 0.0,
                usd=result.usd,
                failures=result.failures,
                lost=result.lost,
            )
        self.emit(step)

    async def _search_once(self, node: Node) -> SearchResult:
        """Search, unless an equal query was searched or is on its way: then share its result, which is paid once."""
        call = (node.source, node.query, node.filters)
        if shared := self._calls.get(call):
            try:
                return replace(await asyncio.shield(shared), credits=0.0, usd=0.0, failures=())
            except SourceError as error:
                raise error.after(error.failures, credits=0.0, usd=0.0) from error
        self._calls[call] = asyncio.get_running_loop().create_future()
        request = SearchRequest(
            node.query,
            limit=self.limit,
            filters=node.filters,
            question=self.question,
            entities=node.entities,
            relations=node.relations,
        )
        try:
            result = await ask(self.sources[node.source], request, seconds=self.seconds)
        except SourceError as error:
            self._calls[call].set_exception(error)
            self._calls[call].exception()  # it was seen, though no other node may share the failure
            raise
        self._calls[call].set_result(result)
        return result


def _found_by(node: Node, rank: int, passage: Passage) -> Passage:
    return passage.model_copy(update={"node": node.id, "rank": passage.rank or rank})
