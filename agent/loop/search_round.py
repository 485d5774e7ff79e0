"""One round of searches: from the text of a plan to the text that goes back to the policy."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.errors import ContextFull, PlanError
from agent.evidence import Passage
from agent.loop.budgets import BudgetEnded
from agent.loop.context import ContextWriter
from agent.loop.execute import Found, execute
from agent.loop.observation import say_rejected, show, show_parents
from agent.loop.state import RolloutState
from agent.plan import Node, Plan, parse_plan
from agent.plan.text import MAX_QUERY_CHARS
from agent.sources.base import credits_of
from agent.trace import BudgetName, Filled, Gathered, Planned, PlanRejected, Searched, SearchFailed, Skipped

FILL_TOKENS: Final = 512
"""Tokens that one fill may have; a query is much shorter."""
_HELD: Final = 64
"""Tokens that are held back for the query when its parents' passages are cut to the room that the context has."""


class _NotFilled(Exception):
    """The node is skipped; the sentence says why."""


class Fills:
    """The fills of one plan. Several may be written at the same time, each in a branch of its own."""

    def __init__(self, state: RolloutState, plan: Plan, *, round: int) -> None:
        """Take the plan as the policy wrote it, at the end of the context; nothing may be appended while it runs.

        Args:
            state: what is left of the policy's tokens is shared equally by the fills, so that none races another one.
            plan: with every parent, also those that will not be searched for.
            round: number of the round.
        """
        children = {child for child, _ in plan.references} if state.protocol.fills else set[str]()
        self._parents = {node.id: node.parents for node in plan.nodes if node.id in children}
        self._ids = [node.id for node in plan.nodes]
        self._state = state
        self._round = round
        share = min(FILL_TOKENS, state.budget.policy_tokens // len(children)) if children else 0
        self._tokens = min(share, state.protocol.turn_tokens or share)
        self._branches: dict[str, ContextWriter] = {}
        self.queries: dict[str, str] = {}
        """Node → the query that the policy wrote."""

    async def fill(self, node: Node, found: Found) -> Node | None:
        """The node with its query filled in; None where it is skipped.

        Raises:
            PolicyError: the engine failed.
        """
        if node.id not in self._parents:
            return node
        try:
            query = self._checked(await self._ask(node, found), node)
        except _NotFilled as why:
            self._state.recorder.step(Skipped(round=self._round, node=node.id, why=str(why)))
            return None
        self.queries[node.id] = query
        self._state.recorder.step(Filled(round=self._round, node=node.id, query=query))
        return node.model_copy(update={"query": query})

    def commit(self, *, since: int) -> None:
        """Write the branches onto the trace in the plan's order, whichever of them was done first."""
        for node in self._ids:
            if node in self._branches:
                self._branches[node].commit(node=node, since=since)

    async def _ask(self, node: Node, found: Found) -> str:
        """What the policy wrote between the tags of a fill, or as the whole turn of a chat."""
        if self._tokens <= 0:
            raise _NotFilled("the budget of policy tokens has ended")
        protocol = self._state.protocol
        writer = self._branches[node.id] = self._state.writer.fork(f"{self._round}.{node.id}")
        try:
            self._show(writer, {parent: found.get(parent, []) for parent in self._parents[node.id]}, node)
            tokens = min(self._tokens, self._state.budget.limit - writer.tokens)
            block, cut = await writer.sample(
                stop=[protocol.closing("fill")], max_tokens=max(tokens, 1), until=("fill",)
            )
        except ContextFull:
            raise _NotFilled("the context has no room for its parents' passages") from None
        if block is not None:
            return block.text
        if cut:
            raise _NotFilled(self._why_cut(tokens))
        last = writer.drain()
        if self._state.continues or last is None or last.tagged:
            raise _NotFilled("its query was not closed")
        return last.text

    def _show(self, writer: ContextWriter, parents: Mapping[str, Sequence[Passage]], node: Node) -> None:
        protocol = self._state.protocol
        room = self._state.budget.limit - writer.tokens - min(_HELD, self._tokens)
        room = min(room, protocol.budget_tokens or room)
        text = show_parents(
            parents, protocol=protocol, fits=lambda text: writer.fits(text, room), tokens=self._state.tokens
        )
        if not text:
            raise ContextFull("not one passage of a parent fits")
        writer.say(text)
        if self._state.continues:
            writer.open("fill", protocol.fill_text(node.id))
        else:
            writer.say(protocol.ask_fill_text(node.id), by="loop")

    def _why_cut(self, tokens: int) -> str:
        if tokens < self._tokens:
            return "the context has no room for its query"
        if tokens < min(FILL_TOKENS, self._state.protocol.turn_tokens or FILL_TOKENS):
            return "the budget of policy tokens has ended"
        return f"its query was not closed within {tokens} tokens"

    def _checked(self, text: str, node: Node) -> str:
        """The query on one line.

        Raises:
            _NotFilled: it cannot be searched.
        """
        query = " ".join(text.split()).removesuffix(f"({node.source})").rstrip()
        if mark := next((mark for mark in self._state.protocol.all_marks if mark in text), ""):
            raise _NotFilled(f"its query holds the mark {mark!r}")
        if query.casefold() == self._state.protocol.skip.casefold():
            raise _NotFilled("the policy skipped it")
        query = re.sub(rf"^{re.escape(node.id)}\s*:\s*", "", query)
        if not query:
            raise _NotFilled("its query is empty")
        if len(query) > MAX_QUERY_CHARS:
            raise _NotFilled(f"its query has {len(query)} characters; at most {MAX_QUERY_CHARS} can be searched")
        filled = node.model_copy(update={"query": query, "parents": self._parents[node.id]})
        if reference := next((parent for _, parent in Plan(nodes=(filled,)).references), ""):
            raise _NotFilled(f"its query still holds '#{reference}'")
        return query


_WHY: Final[Mapping[BudgetName, str]] = {"user": "the user requested the answer", "seconds": "the time has ended"}


@dataclass(eq=False)
class SearchRound:
    """One round. `run` it once."""

    state: RolloutState
    text: str
    """Of a plan, between the search tags, which was just sampled."""

    def __post_init__(self) -> None:
        self._round = self.state.trace.usage.rounds + 1
        self._written = self.state.writer.block_segments
        self._found: Found = {}
        self._left: dict[str, None] = {}
        """Nodes that have no step yet."""
        self._failed: list[SearchFailed] = []

    async def run(self) -> str:
        """Search, and append what was found to the context. Returns why the plan cannot run, or nothing.

        Raises:
            BudgetEnded: a budget does not allow this search, or ended in it; what was found is appended then.
            ContextFull: there is no room for a word.
            PolicyError: the engine failed in a fill.
        """
        state = self.state
        state.budget.may_search()
        state.recorder.count(rounds=1)
        try:
            plan = parse_plan(self.text, protocol=state.protocol, sources=state.sources)
            if not state.protocol.fills:
                _refuse_references(plan)
        except PlanError as error:
            return self._reject(str(error))
        state.recorder.step(Planned(round=self._round, plan=plan), segments=self._written)
        for node in plan.dropped:
            self._skip(node, "its source is unknown")
        fills = Fills(state, plan, round=self._round)
        ended = await self._execute(self._affordable(plan), fills)
        self._observe(plan, fills.queries)
        if ended is not None:
            raise ended
        return ""

    def _reject(self, why: str) -> str:
        self.state.recorder.step(PlanRejected(round=self._round, text=self.text, why=why), segments=self._written)
        if self.state.protocol.plans != 1:
            self.state.writer.say(say_rejected(why, protocol=self.state.protocol, written=self.text))
        return why

    def _skip(self, node: str, why: str) -> None:
        self.state.recorder.step(Skipped(round=self._round, node=node, why=why), segments=self._written)

    def _affordable(self, plan: Plan) -> Plan:
        """What the budgets of searches and credits allow, in the plan's order; the rest is skipped."""
        searches, credits = self.state.budget.searches, self.state.budget.credits
        kept: dict[str, Node] = {}
        budget: BudgetName = "searches"
        for node in plan.nodes:
            cost = credits_of(self.state.sources[node.source])
            if len(kept) < searches and cost <= credits:
                credits -= cost
                kept[node.id] = node.model_copy(update={"parents": tuple(p for p in node.parents if p in kept)})
                continue
            budget = "searches" if len(kept) >= searches else "credits"
            self._skip(node.id, f"the budget of {budget} has ended")
        if not kept:
            raise BudgetEnded(budget)
        self.state.recorder.count(searches=len(kept))
        return Plan(nodes=tuple(kept.values()))

    async def _execute(self, plan: Plan, fills: Fills) -> BudgetEnded | None:
        """Run the plan until it is done or the deadline comes; what was found until then is not lost."""
        recorder, budget = self.state.recorder, self.state.budget
        first, started = len(self.state.trace.steps), recorder.seconds
        self._found = {node.id: [] for node in plan.nodes}
        self._left = dict.fromkeys(self._found)
        ended: BudgetEnded | None = None

        async def fill(node: Node, found: Found) -> Node | None:
            filled = await fills.fill(node, found)
            if filled is None:
                del self._left[node.id]
            return filled

        try:
            async with budget.until_the_deadline():
                await execute(
                    plan,
                    self.state.sources,
                    round=self._round,
                    limit=self.state.protocol.passages,
                    seconds=budget.budgets.search_seconds,
                    emit=self._record,
                    fill=fill,
                    question=self.state.trace.question,
                )
        except BudgetEnded as error:
            ended = error
            for node in self._left:
                self._skip(node, _WHY[ended.budget])
        finally:
            recorder.spent(search=recorder.seconds - started)
            recorder.in_plan_order(plan, since=first)
            fills.commit(since=first)
        return ended

    def _record(self, step: Searched | SearchFailed) -> None:
        del self._left[step.node]
        self.state.recorder.step(step, segments=self._written)
        self.state.recorder.count(credits=step.credits, usd=step.usd)
        if isinstance(step, Searched):
            self._found[step.node] = list(step.passages)
        else:
            self.state.trace.infrastructure = True
            self._failed.append(step)

    def _observe(self, plan: Plan, queries: Mapping[str, str]) -> None:
        """Append what was found to the context, as far as budgets and context have room for it."""
        state, trace = self.state, self.state.trace
        room = state.budget.observation_room(state.writer.tokens)
        room = min(room, state.protocol.budget_tokens or room)
        observation = show(
            self._found,
            self._failed_in_order(),
            protocol=state.protocol,
            seen=trace.passages,
            limit=state.budget.passages,
            fits=lambda text: state.writer.fits(text, room),
            queries=queries,
            nodes=plan.nodes,
            question=trace.question,
            tokens=state.tokens,
        )
        at = self._say(observation.text)
        passages, imitated = ((), ()) if at is None else (observation.passages, observation.imitated)
        dropped = sum(map(len, self._found.values())) - len(passages)
        trace.passages.extend(passages)
        state.recorder.count(passages=len(passages))
        gathered = Gathered(round=self._round, passages=passages, dropped=dropped, imitated=imitated)
        state.recorder.step(gathered, segments=() if at is None else (at,))
        if at is None:
            raise BudgetEnded("context")

    def _failed_in_order(self) -> Sequence[SearchFailed]:
        order = list(self._found)
        return sorted(self._failed, key=lambda step: order.index(step.node))

    def _say(self, text: str) -> int | None:
        """The place of the new segment; None if the text is empty, or there is no room for it."""
        try:
            return self.state.writer.say(text) if text else None
        except ContextFull:
            return None


def _refuse_references(plan: Plan) -> None:
    for child, parent in plan.references:
        raise PlanError(
            f"query {child!r} holds '#{parent}', but a query cannot yet use what another one of the same plan"
            f" finds; search for {parent!r} first, and ask {child!r} in the next round"
        )
