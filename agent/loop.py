"""The loop of one rollout: think, plan, search, merge, until there is an answer or a budget ends."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Final

from agent.budgets import Budgets, Control
from agent.errors import ContextFull, PlanError
from agent.execute import Found, execute
from agent.parse import Block, Piece, TagReader
from agent.plan import Node, Plan, parse_plan
from agent.policies.base import Chunk, Context, Policy, Sampling
from agent.protocols.base import Role, TextProtocol
from agent.recorder import Recorder
from agent.shown import say_rejected, show
from agent.sources.base import Source, credits_of
from agent.trace import Author, BudgetName, Gathered, Planned, PlanRejected, Searched, SearchFailed, Skipped, Stopped

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
        self._context = context
        self._policy = policy
        self._protocol = protocol
        self._sources = sources
        self._budgets = budgets
        self._recorder = recorder
        self._control = control
        self._trace = recorder.trace
        self._sampling = replace(sampling, seed=self._trace.seed)
        self._limit = min(policy.context_tokens, budgets.context_tokens or policy.context_tokens)
        self._held = min(budgets.answer_tokens, self._limit // 4)
        self._deadline = asyncio.get_running_loop().time() + budgets.seconds
        self._reader = TagReader(protocol.policy_roles, opened=None if policy.instructed else protocol.opened)
        self._at = self._block_from = len(context.segments)
        """Places of the segment that is being sampled, and of the one where the block that is being read begins."""

    async def run(self) -> Stopped:
        self._recorder.context(self._context.segments)
        self._recorder.count(prompt_tokens=self._context.tokens)
        try:
            return await self._rounds()
        except _Ended as ended:
            return await self._force(ended.budget)

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
            self._read_anew()

    async def _turn(self) -> Block | None:
        """One turn of the policy: what it thinks is told; the search or the answer that ends it is given back."""
        tokens = self._budgets.policy_tokens - self._held - self._trace.usage.policy_tokens
        room = self._limit - self._held - self._context.tokens
        budget: BudgetName = "policy_tokens" if tokens <= room else "context"
        if min(tokens, room) <= 0:
            raise _Ended(budget)
        try:
            async with self._until_the_deadline():
                ended, cut = await self._generate(
                    stop=self._protocol.stop_texts, max_tokens=min(tokens, room), until=_TURN_ENDS
                )
        except ContextFull:
            raise _Ended("context") from None
        if ended is None and cut:
            raise _Ended(budget)
        if ended is None:
            self._drain()
        return ended

    def _answered(self, block: Block) -> Stopped:
        text = block.text.strip()
        if not text:
            return Stopped(reason="bad_format", detail="the answer is empty")
        self._recorder.answer(text, segments=self._segments())
        return Stopped(reason="answered")

    # Reading what the policy samples

    async def _generate(
        self, *, stop: Sequence[str], max_tokens: int, until: Collection[Role]
    ) -> tuple[Block | None, bool]:
        """Sample, and read. Gives the block whose role is in `until`, and whether the tokens ran out before."""
        before, started = self._context.tokens, self._recorder.seconds
        sampled, last, ended = 0, Chunk(""), None
        self._at = len(self._context.segments)
        try:
            async with aclosing(self._context.generate(self._sampling, stop=stop, max_tokens=max_tokens)) as chunks:
                async for last in chunks:
                    self._recorder.first_token()
                    ended = self._read(last, until)
                    if ended is not None:
                        break
        finally:
            sampled = self._context.tokens - before
            self._recorder.count(policy_tokens=sampled)
            self._recorder.spent(policy=self._recorder.seconds - started)
            self._recorder.context(self._context.segments)
        return ended, last.cut or sampled >= max_tokens

    def _read(self, chunk: Chunk, until: Collection[Role]) -> Block | None:
        answering = self._reader.open_role == "answer"
        ended: Block | None = None
        for part in self._reader.feed(chunk.text):
            if isinstance(part, Piece):
                self._recorder.delta(part.role, part.text)
            elif part.tagged and part.role in until:
                ended = part
                break
            else:
                self._closed(part)
        if answering or self._reader.open_role == "answer" or (ended and ended.role == "answer"):
            self._recorder.count(answer_tokens=len(chunk.ids) or -(-len(chunk.text) // 4))
        return ended

    def _closed(self, block: Block) -> None:
        self._recorder.block(block, segments=self._segments())
        self._block_from = self._at

    def _drain(self) -> Block | None:
        """Tell of what was held back and of the block that nobody closed."""
        last: Block | None = None
        for part in self._reader.close():
            if isinstance(part, Piece):
                self._recorder.delta(part.role, part.text)
            else:
                self._closed(part)
                last = part
        return last

    def _read_anew(self, opened: Role | None = None) -> None:
        self._reader = TagReader(self._protocol.policy_roles, opened=opened)
        self._block_from = len(self._context.segments)

    def _segments(self) -> Sequence[int]:
        """The places of the segments that the current block stands in."""
        return range(self._block_from, self._at + 1)

    # Searching

    async def _search(self, block: Block) -> Stopped | None:
        """One round: from the text of a plan to the text that goes back to the policy."""
        self._may_search()
        self._recorder.count(rounds=1)
        number, written = self._trace.usage.rounds, self._segments()
        try:
            plan = parse_plan(block.text, protocol=self._protocol, sources=self._sources)
            self._refuse_references(plan)
        except PlanError as error:
            self._recorder.step(PlanRejected(round=number, text=block.text, why=str(error)), segments=written)
            if self._protocol.plans == 1:
                return Stopped(reason="bad_format", detail=f"the only plan cannot run: {error}")
            self._append(say_rejected(str(error), protocol=self._protocol), by="environment")
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
            self._recorder.step(Skipped(round=number, node=node.id, why=why), segments=self._segments())
        if not kept:
            raise _Ended(budget)
        self._recorder.count(searches=len(kept), credits=self._budgets.credits - self._trace.usage.credits - credits)
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
            self._recorder.step(step, segments=self._segments())
            if isinstance(step, Searched):
                found[step.node] = list(step.passages)
            else:
                self._trace.infrastructure = True
                failed.append(step)

        try:
            async with self._until_the_deadline():
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
                self._recorder.step(Skipped(round=number, node=node, why=why), segments=self._segments())
        finally:
            self._recorder.spent(search=self._recorder.seconds - started)
        self._recorder.in_plan_order(plan, since=first)
        order = list(found)
        return found, sorted(failed, key=lambda step: order.index(step.node)), ended

    def _show(self, found: Found, failed: Sequence[SearchFailed], number: int) -> None:
        """Append what was found to the context, as far as budgets and context have room for it."""
        usage = self._trace.usage
        room = self._limit - self._held - self._context.tokens
        written = sum(len(segment.text) for segment in self._context.segments)
        shown = show(
            list(found.values()),
            failed,
            protocol=self._protocol,
            seen=self._trace.passages,
            limit=self._budgets.passages - usage.passages,
            chars=int(_CAUTION * room * written / max(self._context.tokens, 1)),
        )
        dropped = sum(map(len, found.values())) - len(shown.passages)
        at: tuple[int, ...] = ()
        if shown.text:
            at = (self._append(shown.text, by="environment"),)
        self._trace.passages.extend(shown.passages)
        self._recorder.count(passages=len(shown.passages))
        self._recorder.step(Gathered(round=number, passages=shown.passages, dropped=dropped), segments=at)
        if not shown.text:
            raise _Ended("context")

    def _append(self, text: str, *, by: Author) -> int:
        """Put text into the context; gives the place of its segment."""
        before = self._context.tokens
        self._context.append(text, by=by)
        if by == "environment":
            self._recorder.count(environment_tokens=self._context.tokens - before)
        self._recorder.context(self._context.segments)
        return len(self._context.segments) - 1

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
        room = min(self._budgets.answer_tokens, self._limit - self._context.tokens)
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
        self._recorder.answer(text, segments=self._segments())
        return Stopped(reason="forced", budget=budget)

    async def _force_inside(self, room: int) -> str:
        """Go on in the policy's own turn: close what is open, open what must come."""
        protocol = self._protocol
        if self._reader.open_role != "answer":
            room -= await self._force_evidence(room)
            self._open("answer")
        block, _ = await self._generate(stop=[protocol.closing("answer")], max_tokens=room, until=("answer",))
        if block is None:
            block = self._drain()
            self._append(protocol.closing("answer"), by="loop")
        return block.text.strip() if block else ""

    async def _force_evidence(self, room: int) -> int:
        """Close the open block; let the policy write its evidence if it has some and wrote none. Gives tokens used."""
        if self._reader.open_role != "evidence":
            self._drain()
        wrote = any(step.kind == "evidenced" for step in self._trace.steps)
        if "evidence" not in self._protocol.tags or wrote or not self._trace.passages:
            return 0
        if self._reader.open_role != "evidence":
            self._open("evidence")
        before = self._context.tokens
        block, _ = await self._generate(
            stop=[self._protocol.closing("evidence")], max_tokens=max(room * 3 // 4, 1), until=("evidence",)
        )
        if block is not None:
            self._closed(block)
        else:
            self._drain()
        return self._context.tokens - before

    def _open(self, role: Role) -> None:
        """Close the block that is open, if one is, and open another one: these tags are the loop's."""
        open_role = self._reader.open_role
        closing = self._protocol.closing(open_role) if open_role else ""
        last = closing or self._context.segments[-1].text
        self._append(closing + ("" if last.endswith("\n") else "\n") + self._protocol.opening(role), by="loop")
        self._read_anew(role)

    async def _force_turn(self, room: int) -> str:
        """Ask a chat engine, which cannot go on inside its turn, in a turn of the user's."""
        self._drain()
        self._append(self._protocol.force_text, by="loop")
        self._read_anew()
        closing = self._protocol.closing("answer")
        block, _ = await self._generate(stop=[closing], max_tokens=room, until=("answer",))
        if block is not None:
            return block.text.strip()
        last = self._drain()
        if last is None or (last.tagged and last.role != "answer"):
            return ""
        if not last.tagged:  # asked for the answer alone, it gave the answer alone
            self._recorder.delta("answer", last.text)
        return last.text.strip()
