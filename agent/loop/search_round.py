"""One round of searches: from the text of a plan to the text that goes back to the policy."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent.errors import ContextFull, PlanError
from agent.loop.budget_tracker import Allowance, BudgetEnded
from agent.loop.context import Tape
from agent.loop.execute import Found, execute
from agent.loop.fills import Fills
from agent.loop.observation import say_rejected, show
from agent.loop.recorder import Recorder
from agent.plan import Node, Plan, parse_plan
from agent.protocols.base import TextProtocol
from agent.sources.base import Source, credits_of
from agent.trace import BudgetName, Gathered, Planned, PlanRejected, Searched, SearchFailed, Skipped

_WHY: Final[Mapping[BudgetName, str]] = {"user": "the answer was asked for", "seconds": "the time has ended"}


class Search:
    """One round. `run` it once."""

    def __init__(
        self,
        text: str,
        *,
        tape: Tape,
        protocol: TextProtocol,
        sources: Mapping[str, Source],
        allowance: Allowance,
        recorder: Recorder,
        continues: bool,
        tokens: Sequence[str] = (),
    ) -> None:
        """Take the text of a plan, which was just sampled.

        Args:
            text: between the search tags.
            tape: the context.
            protocol: how plans and passages are spelled.
            sources: by name.
            allowance: what may still be used.
            recorder: of the trace.
            continues: whether the policy can go on inside its own turn.
            tokens: of its tokenizer, which passages must not spell (see `agent.sanitize.sanitize.unusual_tokens`).
        """
        self._text = text
        self._tape = tape
        self._protocol = protocol
        self._sources = sources
        self._allowance = allowance
        self._recorder = recorder
        self._continues = continues
        self._tokens = tokens
        self._trace = recorder.trace
        self._round = self._trace.usage.rounds + 1
        self._written = tape.block_segments
        self._found: Found = {}
        self._left: dict[str, None] = {}
        """Nodes whose end was not told yet."""
        self._failed: list[SearchFailed] = []

    async def run(self) -> str:
        """Search, and tell the policy what was found; gives why the plan cannot run, or nothing.

        Raises:
            BudgetEnded: a budget does not allow this search, or ended in it; what was found is shown then.
            ContextFull: there is no room for a word.
            PolicyError: the engine failed in a fill.
        """
        self._allowance.may_search()
        self._recorder.count(rounds=1)
        try:
            plan = parse_plan(self._text, protocol=self._protocol, sources=self._sources)
            if not self._protocol.fills:
                _refuse_references(plan)
        except PlanError as error:
            return self._reject(str(error))
        self._recorder.step(Planned(round=self._round, plan=plan), segments=self._written)
        for node in plan.dropped:
            self._skip(node, "its source is unknown")
        fills = Fills(
            self._tape,
            plan,
            round=self._round,
            protocol=self._protocol,
            continues=self._continues,
            allowance=self._allowance,
            recorder=self._recorder,
            marks=self._tokens,
        )
        ended = await self._execute(self._affordable(plan), fills)
        self._show(plan, fills.queries)
        if ended is not None:
            raise ended
        return ""

    def _reject(self, why: str) -> str:
        self._recorder.step(PlanRejected(round=self._round, text=self._text, why=why), segments=self._written)
        if self._protocol.plans != 1:
            self._tape.tell(say_rejected(why, protocol=self._protocol, written=self._text))
        return why

    def _skip(self, node: str, why: str) -> None:
        self._recorder.step(Skipped(round=self._round, node=node, why=why), segments=self._written)

    def _affordable(self, plan: Plan) -> Plan:
        """What the budgets of searches and credits allow, in the plan's order; the rest is skipped."""
        searches, credits = self._allowance.searches, self._allowance.credits
        kept: dict[str, Node] = {}
        budget: BudgetName = "searches"
        for node in plan.nodes:
            cost = credits_of(self._sources[node.source])
            if len(kept) < searches and cost <= credits:
                credits -= cost
                kept[node.id] = node.model_copy(update={"parents": tuple(p for p in node.parents if p in kept)})
                continue
            budget = "searches" if len(kept) >= searches else "credits"
            self._skip(node.id, f"the budget of {budget} has ended")
        if not kept:
            raise BudgetEnded(budget)
        self._recorder.count(searches=len(kept))
        return Plan(nodes=tuple(kept.values()))

    async def _execute(self, plan: Plan, fills: Fills) -> BudgetEnded | None:
        """Run the plan until it is done or the deadline comes; what was found until then is not lost."""
        first, started = len(self._trace.steps), self._recorder.seconds
        self._found = {node.id: [] for node in plan.nodes}
        self._left = dict.fromkeys(self._found)
        ended: BudgetEnded | None = None

        async def fill(node: Node, found: Found) -> Node | None:
            filled = await fills.fill(node, found)
            if filled is None:
                del self._left[node.id]
            return filled

        try:
            async with self._allowance.until_the_deadline():
                await execute(
                    plan,
                    self._sources,
                    round=self._round,
                    limit=self._protocol.passages,
                    seconds=self._allowance.budgets.search_seconds,
                    emit=self._told,
                    fill=fill,
                    question=self._trace.question,
                )
        except BudgetEnded as error:
            ended = error
            for node in self._left:
                self._skip(node, _WHY[ended.budget])
        finally:
            self._recorder.spent(search=self._recorder.seconds - started)
            self._recorder.in_plan_order(plan, since=first)
            fills.commit(since=first)
        return ended

    def _told(self, step: Searched | SearchFailed) -> None:
        del self._left[step.node]
        self._recorder.step(step, segments=self._written)
        if isinstance(step, Searched):
            self._found[step.node] = list(step.passages)
            self._recorder.count(credits=step.credits, usd=step.usd)
        else:
            self._trace.infrastructure = True
            self._failed.append(step)

    def _show(self, plan: Plan, queries: Mapping[str, str]) -> None:
        """Append what was found to the context, as far as budgets and context have room for it."""
        room = self._allowance.may_say(self._tape.tokens)
        room = min(room, self._protocol.budget_tokens or room)
        shown = show(
            self._found,
            self._failed_in_order(),
            protocol=self._protocol,
            seen=self._trace.passages,
            limit=self._allowance.passages,
            fits=lambda text: self._tape.fits(text, room),
            queries=queries,
            nodes=plan.nodes,
            question=self._trace.question,
            tokens=self._tokens,
        )
        at = self._try_to_tell(shown.text)
        passages = () if at is None else shown.passages
        dropped = sum(map(len, self._found.values())) - len(passages)
        self._trace.passages.extend(passages)
        self._recorder.count(passages=len(passages))
        gathered = Gathered(
            round=self._round, passages=passages, dropped=dropped, imitated=() if at is None else shown.imitated
        )
        self._recorder.step(gathered, segments=() if at is None else (at,))
        if at is None:
            raise BudgetEnded("context")

    def _failed_in_order(self) -> Sequence[SearchFailed]:
        order = list(self._found)
        return sorted(self._failed, key=lambda step: order.index(step.node))

    def _try_to_tell(self, text: str) -> int | None:
        """The place of the new segment; None if there is nothing to tell, or no room for it."""
        try:
            return self._tape.tell(text) if text else None
        except ContextFull:
            return None


def _refuse_references(plan: Plan) -> None:
    for child, parent in plan.references:
        raise PlanError(
            f"query {child!r} holds '#{parent}', but a query cannot yet use what another one of the same plan"
            f" finds; search for {parent!r} first, and ask {child!r} in the next round"
        )
