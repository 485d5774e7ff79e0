"""The loop of one rollout: think, plan, search, merge, until there is an answer or a budget ends."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from agent.errors import ContextFull
from agent.loop.budget_tracker import Allowance, BudgetEnded
from agent.loop.budgets import Budgets, Control
from agent.loop.context import Tape
from agent.loop.forced_answer import ForcedAnswer
from agent.loop.recorder import Recorder
from agent.loop.search_round import Search
from agent.policies.base import Context, Policy, Sampling, special_tokens_of
from agent.protocols.answers import answer_in
from agent.protocols.base import Role, TextProtocol
from agent.protocols.parse import Block
from agent.sources.base import Source
from agent.trace import PlanRejected, Stopped

_NEITHER: Final = "the policy's turn ended with neither a search nor an answer"


@dataclass(frozen=True)
class _Turn:
    """What one turn of the policy holds beside its thoughts."""

    search: str | None = None
    """The text of its plan."""
    answer: Block | None = None


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
        self._protocol = protocol
        self._sources = sources
        self._recorder = recorder
        self._continues = policy.continues
        self._tokens = special_tokens_of(policy)
        self._allowance = Allowance(
            budgets,
            protocol=protocol,
            trace=recorder.trace,
            context_tokens=policy.context_tokens,
            control=control,
        )
        templated = protocol.deliver == "user" and policy.continues and not policy.instructed
        self._tape = Tape(
            context,
            protocol=protocol,
            sampling=replace(sampling, seed=recorder.trace.seed),
            recorder=recorder,
            limit=self._allowance.limit,
            opened=None if policy.instructed else protocol.opened,
            template=protocol.chat if templated else None,
        )

    async def run(self) -> Stopped:
        try:
            return await self._rounds()
        except BudgetEnded as ended:
            return await self._force(ended)
        except ContextFull:
            return await self._force(BudgetEnded("context"))

    async def _rounds(self) -> Stopped:
        while True:
            turn = await self._turn()
            if turn.answer is not None:
                return self._answered(turn.answer)
            if turn.search is not None:
                why = await self._search(turn.search)
                if why and self._protocol.plans == 1:
                    return Stopped(reason="bad_format", detail=f"the only plan cannot run: {why}")
            elif self._protocol.invalid:
                self._invalid()
            else:
                return Stopped(reason="bad_format", detail=_NEITHER)

    async def _turn(self) -> _Turn:
        """One turn of the policy: what it thinks is told; the search or the answer that ends it is given back.

        In a protocol with several searches in one turn, their plans are one plan; an answer beside them ends it all.
        """
        tokens, budget = self._allowance.turn(self._tape.tokens)
        until: tuple[Role, ...] = ("answer",) if self._protocol.several else ("search", "answer")
        async with self._allowance.until_the_deadline():
            ended, cut = await self._tape.sample(stop=self._protocol.stop_texts, max_tokens=tokens, until=until)
        if ended is None and cut and budget is not None:
            raise BudgetEnded(budget)
        if ended is None:
            self._tape.drain()
        if ended is not None and ended.role == "answer":
            return _Turn(answer=ended)
        searches = self._tape.searches if ended is None else [ended]
        return _Turn(search="\n".join(block.text for block in searches) if searches else None)

    async def _search(self, text: str) -> str:
        """Gives why the plan cannot run, or nothing."""
        search = Search(
            text,
            tape=self._tape,
            protocol=self._protocol,
            sources=self._sources,
            allowance=self._allowance,
            recorder=self._recorder,
            continues=self._continues,
            tokens=self._tokens,
        )
        return await search.run()

    def _invalid(self) -> None:
        """Tell the policy that its turn says nothing; this is a round, too."""
        self._allowance.may_go_on()
        self._recorder.count(rounds=1)
        number, at = self._recorder.trace.usage.rounds, self._tape.block_segments
        there = [place for place in at if place < len(self._recorder.trace.segments)]
        self._recorder.step(PlanRejected(round=number, text="", why=_NEITHER), segments=there)
        self._tape.tell(self._protocol.invalid)

    def _answered(self, block: Block) -> Stopped:
        text = answer_in(block.text, self._protocol)
        if text is None:
            return Stopped(reason="bad_format", detail="the answer has no \\boxed{} that is closed")
        if not text:
            return Stopped(reason="bad_format", detail="the answer is empty")
        self._recorder.answer(text, segments=self._tape.block_segments)
        return Stopped(reason="answered")

    async def _force(self, ended: BudgetEnded) -> Stopped:
        forced = ForcedAnswer(
            tape=self._tape,
            protocol=self._protocol,
            allowance=self._allowance,
            recorder=self._recorder,
            continues=self._continues,
        )
        return await forced.run(ended.budget)
