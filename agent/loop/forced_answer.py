"""The forced answer: a budget has ended, and the policy answers with what there is."""

import asyncio
from contextlib import suppress

from agent.errors import ContextFull
from agent.loop.budget_tracker import Allowance
from agent.loop.context import Tape
from agent.loop.recorder import Recorder
from agent.protocols.answers import answer_in
from agent.protocols.base import TextProtocol
from agent.trace import BudgetName, Stopped


class ForcedAnswer:
    """Opens the evidence and the answer for the policy, and lets it write them."""

    def __init__(
        self, *, tape: Tape, protocol: TextProtocol, allowance: Allowance, recorder: Recorder, continues: bool
    ) -> None:
        self._tape = tape
        self._protocol = protocol
        self._allowance = allowance
        self._recorder = recorder
        self._continues = continues

    async def run(self, budget: BudgetName) -> Stopped:
        """Let the policy answer within `answer_seconds` and the tokens that were held back for it."""
        room = min(self._allowance.held, self._room)
        text = ""
        scope = asyncio.timeout(self._allowance.budgets.answer_seconds)
        try:
            async with scope:
                if room > 0:
                    text = await (self._inside(room) if self._continues else self._turn(room))
        except ContextFull:
            room = 0
        except TimeoutError:
            if not scope.expired():
                raise
        if not text:
            why = "the policy gave no answer" if room > 0 else "the context has no room for an answer"
            return Stopped(reason="forced", budget=budget, detail=why)
        held = answer_in(text, self._protocol)
        self._recorder.answer(text if held is None else held, segments=self._tape.block_segments)
        return Stopped(reason="forced", budget=budget)

    @property
    def _room(self) -> int:
        return self._allowance.limit - self._tape.tokens

    async def _inside(self, room: int) -> str:
        """Go on in the policy's own turn: close what is open, open what must come."""
        closing = self._protocol.closing("answer")
        if self._tape.ended_turn and self._protocol.deliver == "user":
            self._tape.drain()
            self._tape.tell(self._protocol.force_text, by="loop")
        stop = [closing]
        if self._tape.open_role != "answer":
            room -= await self._evidence(room * 3 // 4)
            self._tape.open("answer", alone=True)
            marks = self._protocol.policy_marks.values()
            stop = list(dict.fromkeys([closing, *(mark.close for mark in marks)]))
        left = self._left(room, closing)
        if left <= 0:
            return ""
        block, _ = await self._tape.sample(stop=stop, max_tokens=left, until=("answer",))
        if block is None:
            block = self._tape.drain()
            with suppress(ContextFull):  # the answer took all the room there was; it counts without its closing mark
                self._tape.append(closing, by="loop")
        return block.text.strip() if block else ""

    async def _evidence(self, room: int) -> int:
        """Let the policy write evidence, if it was shown passages and wrote none. Gives the tokens that it sampled."""
        trace = self._recorder.trace
        wrote = any(step.kind == "evidenced" for step in trace.steps)
        wanted = "evidence" in self._protocol.tags and bool(trace.passages) and not wrote and room > 0
        if not wanted or self._tape.open_role != "evidence":
            self._tape.drain()
        if not wanted:
            return 0
        if self._tape.open_role != "evidence":
            self._tape.open("evidence")
        before = trace.usage.policy_tokens
        closing = self._protocol.closing("evidence")
        left = self._left(room, f"{closing}\n{self._protocol.opening('answer')}")
        if left <= 0:
            return 0
        block, _ = await self._tape.sample(stop=[closing], max_tokens=left, until=("evidence",))
        if block is not None:
            self._tape.close(block)
        else:
            self._tape.drain()
        return trace.usage.policy_tokens - before

    def _left(self, room: int, after: str) -> int:
        """Tokens that may be sampled so that `after` fits behind them, or without it where there is so little room."""
        return min(room, self._room - self._tape.count(after) if self._room > self._tape.count(after) else self._room)

    async def _turn(self, room: int) -> str:
        """Ask a chat engine, which cannot go on inside its turn, in a turn of the user's."""
        self._tape.drain()
        self._tape.tell(self._protocol.force_text, by="loop")
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
