"""The loop of one rollout: think, plan, search, merge, until there is an answer or a budget ends."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from agent.budgets import Budgets, Control
from agent.errors import ContextFull, PlanError
from agent.execute import Found, execute
from agent.parse import Block
from agent.plan import Node, Plan, parse_plan
from agent.policies.base import Context, Policy, Sampling
from agent.protocols.base import Role, TextProtocol
from agent.recorder import Recorder
from agent.shown import say_rejected, show
from agent.sources.asked import Asked, asked_for
from agent.sources.base import Source, credits_of
from agent.tape import Tape
from agent.trace import BudgetName, Gathered, Planned, PlanRejected, Searched, SearchFailed, Skipped, Stopped

_CAUTION: Final = 0.8
"""Share of the room that is filled with passages: how many tokens a text makes is known only afterwards."""
_TURN_ENDS: Final[tuple[Role, ...]] = ("search", "answer")


class _Ended(Exception):
    """A budget has ended."""

    def __init__(self, budget: BudgetName) -> None:
        super().__init__(budget)
        self.budget: BudgetName = budget


class Loop:
    """One rollout on one context. `run` it once."""

    def __init__(
        self,
        context: Context,
        *,
        policy: Policy,
        protocol: TextProtocol,
        sources: Mapping[str, Source],
        budgets: Budgets,
        sampling: Sampling,
        recorder: Recorder,
        control: Control,
    ) -> None:
        self._policy = policy
        self._protocol = protocol
        self._sources = sources
        self._budgets = budgets
        self._recorder = recorder
        self._control = control
        self._trace = recorder.trace
        self._limit = min(policy.context_tokens, budgets.context_tokens or policy.context_tokens)
        self._held = min(budgets.answer_tokens, budgets.policy_tokens, self._limit // 4)
        self._deadline = asyncio.get_running_loop().time() + budgets.seconds
        self._tape = Tape(
            context,
            protocol=protocol,
            sampling=replace(sampling, seed=self._trace.seed),
            recorder=recorder,
            opened=None if policy.instructed else protocol.opened,
        )

    async def run(self) -> Stopped:
        try:
            return await self._rounds()
        except _Ended as ended:
            return await self._force(ended.budget)
        except ContextFull:
            return await self._force("context")

    async def _rounds(self) -> Stopped:
        while True:
            block = await self._turn()
            if block is None:
                return Stopped(
                    reason="bad_format", detail="the policy's turn ended with neither a search nor an answer"
                )
            if block.role == "answer":
                return self._answered(block)
            if stopped := await self._search(block):
                return stopped
            self._tape.read_anew()

    async def _turn(self) -> Block | None:
        """One turn of the policy: what it thinks is told; the search or the answer that ends it is given back."""
        tokens = self._budgets.policy_tokens - self._held - self._trace.usage.policy_tokens
        room = self._limit - self._held - self._tape.tokens
        budget: BudgetName = "policy_tokens" if tokens <= room else "context"
        if min(tokens, room) <= 0:
            raise _Ended(budget)
        async with self._until_the_deadline():
            ended, cut = await self._tape.sample(
                stop=self._protocol.stop_texts, max_tokens=min(tokens, room), until=_TURN_ENDS
            )
        if ended is None and cut:
            raise _Ended(budget)
        if ended is None:
            self._tape.drain()
        return ended

    def _answered(self, block: Block) -> Stopped:
        text = block.text.strip()
        if not text:
            return Stopped(reason="bad_format", detail="the answer is empty")
        self._recorder.answer(text, segments=self._tape.block_segments)
        return Stopped(reason="answered")

    # Searching

    async def _search(self, block: Block) -> Stopped | None:
        """One round: from the text of a plan to the text that goes back to the policy."""
        self._may_search()
        self._recorder.count(rounds=1)
        number, written = self._trace.usage.rounds, self._tape.block_segments
        try:
            plan = parse_plan(block.text, protocol=self._protocol, sources=self._sources)
            self._refuse_references(plan)
        except PlanError as error:
            self._recorder.step(PlanRejected(round=number, text=block.text, why=str(error)), segments=written)
            if self._protocol.plans == 1:
                return Stopped(reason="bad_format", detail=f"the only plan cannot run: {error}")
            self._tape.append(say_rejected(str(error), protocol=self._protocol), by="environment")
            return None
        self._recorder.step(Planned(round=number, plan=plan), segments=written)
        for node in plan.dropped:
            self._recorder.step(Skipped(round=number, node=node, why="its source is unknown"), segments=written)
        plan = self._affordable(plan, number)
        found, failed, ended = await self._execute(plan, number)
        self._show(found, failed, number)
        if ended is not None:
            raise ended
        return None

    def _may_search(self) -> None:
        """Raise when a budget does not allow another round."""
        usage, budgets = self._trace.usage, self._budgets
        rounds = self._protocol.max_rounds if budgets.rounds is None else budgets.rounds
        if usage.rounds >= min(rounds, self._protocol.plans or rounds):
            raise _Ended("rounds")
        if usage.searches >= budgets.searches:
            raise _Ended("searches")
        if usage.passages >= budgets.passages:
            raise _Ended("passages")

    @staticmethod
    def _refuse_references(plan: Plan) -> None:
        for child, parent in plan.references:
            raise PlanError(
                f"query {child!r} holds '#{parent}', but a query cannot yet use what another one of the same plan"
                f" finds; search for {parent!r} first, and ask {child!r} in the next round"
            )

    def _affordable(self, plan: Plan, number: int) -> Plan:
        """What the budgets of searches and credits allow, in the plan's order; the rest is skipped."""
        searches = self._budgets.searches - self._trace.usage.searches
        credits = self._budgets.credits - self._trace.usage.credits
        kept: dict[str, Node] = {}
        budget: BudgetName = "searches"
        for node in plan.nodes:
            cost = credits_of(self._sources[node.source])
            if len(kept) < searches and cost <= credits:
                credits -= cost
                kept[node.id] = node.model_copy(update={"parents": tuple(p for p in node.parents if p in kept)})
                continue
            budget = "searches" if len(kept) >= searches else "credits"
            why = f"the budget of {budget} has ended"
            self._recorder.step(Skipped(round=number, node=node.id, why=why), segments=self._tape.block_segments)
        if not kept:
            raise _Ended(budget)
        self._recorder.count(searches=len(kept))
        return Plan(nodes=tuple(kept.values()))

    async def _execute(self, plan: Plan, number: int) -> tuple[Found, list[SearchFailed], _Ended | None]:
        """Run the plan until it is done or the deadline comes; what was found until then is not lost."""
        first, started = len(self._trace.steps), self._recorder.seconds
        found: Found = {node.id: [] for node in plan.nodes}
        left = dict.fromkeys(found)
        failed: list[SearchFailed] = []
        ended: _Ended | None = None

        def told(step: Searched | SearchFailed) -> None:
            del left[step.node]
            self._recorder.step(step, segments=self._tape.block_segments)
            if isinstance(step, Searched):
                found[step.node] = list(step.passages)
                self._recorder.count(credits=step.credits, usd=step.usd)
            else:
                self._trace.infrastructure = True
                failed.append(step)

        try:
            async with self._until_the_deadline():
                with asked_for(Asked(question=self._trace.question)):
                    await execute(
                        plan,
                        self._sources,
                        round=number,
                        limit=self._protocol.passages,
                        seconds=self._budgets.search_seconds,
                        emit=told,
                    )
        except _Ended as error:
            ended = error
            why = "the answer was asked for" if ended.budget == "user" else "the time has ended"
            for node in left:
                self._recorder.step(Skipped(round=number, node=node, why=why), segments=self._tape.block_segments)
        finally:
            self._recorder.spent(search=self._recorder.seconds - started)
        self._recorder.in_plan_order(plan, since=first)
        order = list(found)
        return found, sorted(failed, key=lambda step: order.index(step.node)), ended

    def _show(self, found: Found, failed: Sequence[SearchFailed], number: int) -> None:
        """Append what was found to the context, as far as budgets and context have room for it."""
        chars = int(_CAUTION * self._tape.chars_per_token * (self._limit - self._held - self._tape.tokens))
        while True:
            shown = show(
                list(found.values()),
                failed,
                protocol=self._protocol,
                seen=self._trace.passages,
                limit=self._budgets.passages - self._trace.usage.passages,
                chars=chars,
            )
            at = self._try_to_append(shown.text)
            if at is not None or not shown.text:
                break
            chars = len(shown.text) // 2
        passages = () if at is None else shown.passages
        dropped = sum(map(len, found.values())) - len(passages)
        self._trace.passages.extend(passages)
        self._recorder.count(passages=len(passages))
        gathered = Gathered(round=number, passages=passages, dropped=dropped)
        self._recorder.step(gathered, segments=() if at is None else (at,))
        if at is None:
            raise _Ended("context")

    def _try_to_append(self, text: str) -> int | None:
        """The place of the new segment; None if there is nothing to append, or no room for it."""
        try:
            return self._tape.append(text, by="environment") if text else None
        except ContextFull:
            return None

    @asynccontextmanager
    async def _until_the_deadline(self) -> AsyncGenerator[None]:
        """Cut what runs inside when the time ends or the user wants the answer."""
        scope = asyncio.timeout_at(self._deadline)
        try:
            async with scope:
                with self._control.cutting(scope):
                    yield
        except TimeoutError:
            if not scope.expired():
                raise
            raise _Ended("user" if self._control.asked else "seconds") from None

    # The forced answer

    async def _force(self, budget: BudgetName) -> Stopped:
        """A budget has ended: open the evidence and the answer for the policy, and let it write them."""
        room = min(self._held, self._limit - self._tape.tokens)
        text = ""
        scope = asyncio.timeout(self._budgets.answer_seconds)
        try:
            async with scope:
                if room > 0:
                    text = await (self._force_inside(room) if self._policy.continues else self._force_turn(room))
        except ContextFull:
            room = 0
        except TimeoutError:
            if not scope.expired():
                raise
        if not text:
            why = "the policy gave no answer" if room > 0 else "the context has no room for an answer"
            return Stopped(reason="forced", budget=budget, detail=why)
        self._recorder.answer(text, segments=self._tape.block_segments)
        return Stopped(reason="forced", budget=budget)

    async def _force_inside(self, room: int) -> str:
        """Go on in the policy's own turn: close what is open, open what must come."""
        closing = self._protocol.closing("answer")
        if self._tape.open_role != "answer":
            room -= await self._force_evidence(room * 3 // 4)
            self._tape.open("answer")
        left = max(min(room, self._limit - self._tape.tokens), 1)
        block, _ = await self._tape.sample(stop=[closing], max_tokens=left, until=("answer",))
        if block is None:
            block = self._tape.drain()
            self._tape.append(closing, by="loop")
        return block.text.strip() if block else ""

    async def _force_evidence(self, room: int) -> int:
        """Let the policy write evidence, if it was shown passages and wrote none. Gives the tokens that it sampled."""
        wrote = any(step.kind == "evidenced" for step in self._trace.steps)
        wanted = "evidence" in self._protocol.tags and bool(self._trace.passages) and not wrote and room > 0
        if not wanted or self._tape.open_role != "evidence":
            self._tape.drain()
        if not wanted:
            return 0
        if self._tape.open_role != "evidence":
            self._tape.open("evidence")
        before = self._trace.usage.policy_tokens
        closing = self._protocol.closing("evidence")
        block, _ = await self._tape.sample(stop=[closing], max_tokens=room, until=("evidence",))
        if block is not None:
            self._tape.close(block)
        else:
            self._tape.drain()
        return self._trace.usage.policy_tokens - before

    async def _force_turn(self, room: int) -> str:
        """Ask a chat engine, which cannot go on inside its turn, in a turn of the user's."""
        self._tape.drain()
        self._tape.append(self._protocol.force_text, by="loop")
        self._tape.read_anew()
        closing = self._protocol.closing("answer")
        block, _ = await self._tape.sample(stop=[closing], max_tokens=room, until=("answer",))
        if block is not None:
            return block.text.strip()
        last = self._tape.drain()
        if last is None or (last.tagged and last.role != "answer"):
            return ""
        if not last.tagged:  # asked for the answer alone, it gave the answer alone
            self._recorder.delta("answer", last.text)
        return last.text.strip()
