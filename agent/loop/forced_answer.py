"""The forced answer: a budget has ended, and the policy answers with what there is."""

import asyncio
from contextlib import suppress

from agent.errors import ContextFull
from agent.loop.state import RolloutState
from agent.protocols.answers import answer_in
from agent.trace import BudgetName, Stopped


async def force_answer(state: RolloutState, budget: BudgetName) -> Stopped:
    """Let the policy answer within `answer_seconds` and the tokens that were held back for it."""
    room = min(state.budget.held, _room(state))
    text = ""
    scope = asyncio.timeout(state.budget.budgets.answer_seconds)
    try:
        async with scope:
            if room > 0:
                text = await (_inside(state, room) if state.continues else _new_turn(state, room))
    except ContextFull:
        room = 0
    except TimeoutError:
        if not scope.expired():
            raise
        begun = state.writer.drain()
        text = _begun(begun.text, state) if begun and begun.role == "answer" else ""
    if not text:
        why = "the policy gave no answer" if room > 0 else "the context has no room for an answer"
        return Stopped(reason="forced", budget=budget, detail=why)
    held = answer_in(text, state.protocol)
    state.recorder.answer(text if held is None else held, segments=state.writer.block_segments)
    return Stopped(reason="forced", budget=budget)


async def _inside(state: RolloutState, room: int) -> str:
    """Go on in the policy's own turn: close what is open, open what must come."""
    writer, protocol = state.writer, state.protocol
    closing = protocol.closing("answer")
    if writer.ended_turn and protocol.deliver == "user":
        writer.drain()
        writer.say(protocol.force_text, by="loop")
    stop = [closing]
    if writer.open_role != "answer":
        room -= await _evidence(state, room * 3 // 4)
        writer.open("answer", alone=True)
        stop = list(dict.fromkeys([closing, *(mark.close for mark in protocol.policy_marks.values())]))
    left = _left(state, room, closing)
    if left <= 0:
        return ""
    block, _ = await writer.sample(stop=stop, max_tokens=left, until=("answer",))
    if block is None:
        block = writer.drain()
        with suppress(ContextFull):  # the answer took all the room there was; it counts without its closing mark
            writer.append(closing, by="loop")
        return _begun(block.text, state) if block else ""
    return block.text.strip()


async def _evidence(state: RolloutState, room: int) -> int:
    """Let the policy write evidence, if it saw passages and wrote none. Returns the tokens that it sampled."""
    writer, protocol, trace = state.writer, state.protocol, state.trace
    wrote = any(step.kind == "evidenced" for step in trace.steps)
    wanted = "evidence" in protocol.tags and bool(trace.passages) and not wrote and room > 0
    if not wanted or writer.open_role != "evidence":
        writer.drain()
    if not wanted:
        return 0
    if writer.open_role != "evidence":
        writer.open("evidence")
    before = trace.usage.policy_tokens
    closing = protocol.closing("evidence")
    left = _left(state, room, f"{closing}\n{protocol.opening('answer')}")
    if left <= 0:
        return 0
    block, _ = await writer.sample(stop=[closing], max_tokens=left, until=("evidence",))
    if block is not None:
        writer.close(block)
    else:
        writer.drain()
    return trace.usage.policy_tokens - before


async def _new_turn(state: RolloutState, room: int) -> str:
    """Request the answer in a turn of the user's, from a chat engine that cannot go on inside its own turn."""
    writer, protocol = state.writer, state.protocol
    writer.drain()
    writer.say(protocol.force_text, by="loop")
    block, _ = await writer.sample(stop=[protocol.closing("answer")], max_tokens=room, until=("answer",))
    if block is not None:
        return block.text.strip()
    last = writer.drain()
    if last is None or (last.tagged and last.role != "answer"):
        return ""
    if not last.tagged:  # the request was for the answer alone, and that is what came
        state.recorder.delta("answer", last.text)
    return _begun(last.text, state)


def _begun(text: str, state: RolloutState) -> str:
    """An answer that was cut, without the half of its closing mark that may stand at the end."""
    closing = state.protocol.closing("answer")
    halves = (closing[:length] for length in range(len(closing) - 1, 0, -1))
    return text.removesuffix(next(filter(text.endswith, halves), "")).strip()


def _room(state: RolloutState) -> int:
    return state.budget.limit - state.writer.tokens


def _left(state: RolloutState, room: int, after: str) -> int:
    """Tokens that may be sampled so that `after` fits behind them, or without it where there is so little room."""
    whole, needed = _room(state), state.writer.count(after)
    return min(room, whole - needed if whole > needed else whole)
