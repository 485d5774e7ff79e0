"""The loop of one rollout: think, plan, search, merge, until there is an answer or a budget ends."""

from dataclasses import dataclass
from typing import Final

from agent.errors import ContextFull
from agent.loop.budgets import BudgetEnded
from agent.loop.forced_answer import force_answer
from agent.loop.quoted_section import quote_section
from agent.loop.search_round import SearchRound
from agent.loop.state import RolloutState
from agent.protocols.answers import answer_in
from agent.protocols.base import Role
from agent.protocols.parse import Block
from agent.trace import PlanRejected, Stopped

_NEITHER: Final = "the policy's turn ended with neither a search nor an answer"


@dataclass(frozen=True)
class _Turn:
    """What one turn of the policy holds beside its thoughts."""

    search: str | None = None
    """The text of its plan."""
    answer: Block | None = None


async def run_loop(state: RolloutState) -> Stopped:
    """Run a rollout to its end. Call it once for each state.

    Raises:
        PolicyError: the engine failed.
    """
    try:
        return await _rounds(state)
    except BudgetEnded as ended:
        return await force_answer(state, ended.budget)
    except ContextFull:
        return await force_answer(state, "context")


async def _rounds(state: RolloutState) -> Stopped:
    protocol = state.protocol
    while True:
        turn = await _turn(state)
        if turn.answer is not None:
            return _answered(state, turn.answer)
        if turn.search is not None:
            why = await SearchRound(state, turn.search).run()
            if why and protocol.plans == 1:
                return Stopped(reason="bad_format", detail=f"the only plan cannot run: {why}")
            if not state.instructed and quote_section(state.recorder):
                return Stopped(reason="answered")
        elif protocol.invalid:
            _invalid(state)
        else:
            return Stopped(reason="bad_format", detail=_NEITHER)


async def _turn(state: RolloutState) -> _Turn:
    """One turn of the policy: its thoughts are recorded, and the search or the answer that ends it is returned.

    In a protocol with several searches in one turn, their plans are one plan; an answer beside them ends the rollout.
    """
    writer, protocol = state.writer, state.protocol
    tokens, budget = state.budget.turn(writer.tokens)
    until: tuple[Role, ...] = ("answer",) if protocol.several else ("search", "answer")
    async with state.budget.until_the_deadline():
        ended, cut = await writer.sample(stop=protocol.stop_texts, max_tokens=tokens, until=until)
    if ended is None and cut and budget is not None:
        raise BudgetEnded(budget)
    if ended is None:
        writer.drain()
    if ended is not None and ended.role == "answer":
        return _Turn(answer=ended)
    searches = writer.searches if ended is None else [ended]
    return _Turn(search="\n".join(block.text for block in searches) if searches else None)


def _invalid(state: RolloutState) -> None:
    """Answer a turn that holds nothing to act on with the protocol's text; this is a round, too."""
    state.budget.may_go_on()
    state.recorder.count(rounds=1)
    segments = [place for place in state.writer.block_segments if place < len(state.trace.segments)]
    state.recorder.step(PlanRejected(round=state.trace.usage.rounds, text="", why=_NEITHER), segments=segments)
    state.writer.say(state.protocol.invalid)


def _answered(state: RolloutState, block: Block) -> Stopped:
    text = answer_in(block.text, state.protocol)
    if text is None:
        return Stopped(reason="bad_format", detail="the answer has no \\boxed{} that is closed")
    if not text:
        return Stopped(reason="bad_format", detail="the answer is empty")
    state.recorder.answer(text, segments=state.writer.block_segments)
    return Stopped(reason="answered")
