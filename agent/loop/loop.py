"""The loop of one rollout: think, plan, search, merge, until there is an answer or a budget ends."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from agent.checks.tokens import sentences
from agent.errors import ContextFull
from agent.evidence import Passage
from agent.loop.budgets import BudgetEnded
from agent.loop.recorder import Recorder
from agent.loop.search_round import SearchRound
from agent.loop.state import RolloutState
from agent.protocols.answers import answer_in
from agent.protocols.base import Role
from agent.protocols.parse import Block
from agent.sources.titles import is_its_question, own_section
from agent.trace import BudgetName, PlanRejected, Stopped

_MOST_CHARS: Final = 400
"""Of an answer; its first sentence may be longer."""
_POINTER: Final = re.compile(r"\s*\((?:\[[^\]]*\]\([^)]*\)(?:,\s*)?)+\)")
"""Links in brackets to where more is said."""
_VERDICT: Final = re.compile(r"(?:yes|no)[.!](?:\s+|$)", re.IGNORECASE)
"""It answers the heading alone: a question like it may be the other way round."""
_PROSE: Final = re.compile(r"[\"'“`(]?\w")

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


def quote_section(recorder: Recorder) -> bool:
    """Answer with the section whose heading is the question, if one was shown; gives whether it did.

    Questions and answers, help pages and glossaries have such sections. A small policy reads single words out of them,
    or answers with the heading; so the loop quotes them. A general model reads and answers as it always does.
    """
    question = recorder.trace.question
    section = own_section(recorder.trace.passages, question)
    said = _first_sentences(section) if section else []
    if section and said and not is_its_question(section, question):
        said = [sentence for sentence in (_VERDICT.sub("", said[0]), *said[1:]) if sentence]
    if section is None or not said:
        return False
    claims = "\n".join(f"- {sentence} [{section.number}]" for sentence in said)
    recorder.block(Block("evidence", claims), segments=())
    recorder.answer(" ".join(said), by_loop=True)
    return True


def _first_sentences(section: Passage) -> list[str]:
    """Those that fit; of a section that begins with a list, a table or code, none."""
    kept: list[str] = []
    text = section.text.partition("\n\n")[0]
    if not _PROSE.match(text):
        return []
    for sentence in sentences(text):
        plain = _POINTER.sub("", " ".join(text[sentence.start : sentence.end].split()))
        if kept and len(" ".join([*kept, plain])) > _MOST_CHARS:
            break
        kept.append(plain)
    return kept


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
    begun = writer.drain()
    if begun is not None and begun.role == "answer":  # a reader of the stream has it: what comes is another answer
        state.recorder.delta("answer", "\n\n")
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
