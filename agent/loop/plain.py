"""The policy answers by itself, without searching: `cairn-chat`, and the words of a report."""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace

from agent.loop.agent import record_end
from agent.loop.budgets import Budgets, Control
from agent.loop.recorder import Emit, Recorder
from agent.policies.base import Context, Policy, Sampling, open_context
from agent.protocols import TextProtocol
from agent.protocols.base import Mark
from agent.protocols.parse import Block, OpenPiece, TagReader
from agent.trace import BudgetName, Stopped, Trace


def plain_protocol(system: str) -> TextProtocol:
    """No rounds, and only the tag of reasoning: what comes out beside it is the answer."""
    return TextProtocol(
        name="chat",
        prompt="{question}",
        instructions=system or "You are a helpful assistant. Answer briefly.",
        tags={"reflect": Mark(open="<think>", close="</think>")},
        plan="queries",
        max_rounds=0,
        stops=(),
    )


@dataclass(frozen=True)
class PlainChat:
    """A rollout of one turn."""

    policy: Policy
    protocol: TextProtocol
    sampling: Sampling
    budgets: Budgets

    async def run(self, trace: Trace, *, emit: Emit, control: Control) -> Trace:
        """Write the answer onto `trace`. However it ends is recorded as the loop records it."""
        recorder = Recorder(trace, emit)
        return await record_end(recorder, self._answer(recorder, control))

    async def _answer(self, recorder: Recorder, control: Control) -> Stopped:
        """The answer; where its time ends or the user wants it now, it is what there is of it."""
        trace = recorder.trace
        context = await open_context(self.policy, self.protocol, trace.question, history=trace.history)
        before, first = context.tokens, len(context.segments)
        recorder.count(prompt_tokens=before)
        scope = asyncio.timeout(self.budgets.seconds)
        said: list[str] = []
        cut: BudgetName | None = None
        try:
            async with scope:
                with control.cutting(scope):
                    cut = await self._say(context, recorder, said)
        except TimeoutError:
            if not scope.expired():
                raise
            cut = "user" if control.answer_requested else "seconds"
        finally:
            recorder.keep(context.segments)
            recorder.count(policy_tokens=context.tokens - before)
        places = range(first, len(context.segments))
        recorder.answer("".join(said).strip(), segments=places)
        return Stopped(reason="forced", budget=cut) if cut else Stopped(reason="answered")

    async def _say(self, context: Context, recorder: Recorder, said: list[str]) -> BudgetName | None:
        """Emit new text, and put what of it belongs to the answer into `said`. Gives the budget that cut it off."""
        reader = TagReader(self.protocol.policy_marks)
        own = False  # whether what came last belongs to the answer

        def emit(parts: Iterable[OpenPiece | Block]) -> None:
            nonlocal own
            for part in parts:
                if isinstance(part, OpenPiece):
                    own = part.role == "thought"
                    said.extend([part.text] if own else [])
                    recorder.delta("answer" if own else part.role, part.text)

        cut: BudgetName | None = None
        sampling = replace(self.sampling, seed=recorder.trace.seed)
        async with aclosing(context.generate(sampling, stop=(), max_tokens=self.budgets.policy_tokens)) as chunks:
            async for chunk in chunks:
                recorder.first_token()
                emit(reader.feed(chunk.text))
                recorder.count(answer_tokens=chunk.tokens if own else 0)
                cut = "policy_tokens" if chunk.cut else cut
        emit(reader.close())
        return cut
