"""One round of searches: from the text of a plan to the text that goes back to the policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.errors import ContextFull, PlanError
from agent.loop.budgets import BudgetEnded
from agent.loop.execute import Found, execute
from agent.loop.fills import Fills
from agent.loop.observation import say_rejected, show
from agent.loop.state import RolloutState
from agent.plan import Node, Plan, parse_plan
from agent.sources.base import credits_of
from agent.trace import BudgetName, Gathered, Planned, PlanRejected, Searched, SearchFailed, Skipped

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
        if isinstance(step, Searched):
            self._found[step.node] = list(step.passages)
            self.state.recorder.count(credits=step.credits, usd=step.usd)
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
