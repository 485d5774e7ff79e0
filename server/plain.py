"""`cairn-chat`: the policy answers by itself, without searching. Chat clients use it for titles and tags."""

from contextlib import aclosing
from dataclasses import dataclass

from agent.errors import PolicyError
from agent.policies.base import Policy, Sampling
from agent.protocols import TextProtocol
from agent.recorder import Emit, Recorder
from agent.trace import Stopped, Trace


def plain_protocol(system: str) -> TextProtocol:
    """No tags and no rounds: the question goes in, and what comes out is the answer."""
    return TextProtocol(
        name="chat",
        prompt="{question}",
        instructions=system or "You are a helpful assistant. Answer briefly.",
        tags={},
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
    most_tokens: int

    async def run(self, trace: Trace, emit: Emit) -> Trace:
        """Write the answer onto `trace`. An engine that fails is recorded as `Stopped("engine")`, as in the loop."""
        recorder = Recorder(trace, emit)
        try:
            recorder.stop(await self._answer(recorder))
        except PolicyError as error:
            trace.infrastructure = True
            recorder.stop(Stopped(reason="engine", detail=str(error)))
        return trace

    async def _answer(self, recorder: Recorder) -> Stopped:
        trace = recorder.trace
        context = self.policy.open(self.protocol, trace.question, history=trace.history)
        before = context.tokens
        recorder.count(prompt_tokens=before)
        texts: list[str] = []
        cut = False
        async with aclosing(context.generate(self.sampling, stop=(), max_tokens=self.most_tokens)) as chunks:
            async for chunk in chunks:
                recorder.first_token()
                recorder.delta("answer", chunk.text)
                texts.append(chunk.text)
                cut = cut or chunk.cut
        recorder.context(context.segments)
        sampled = context.tokens - before
        recorder.count(policy_tokens=sampled, answer_tokens=sampled)
        recorder.answer("".join(texts).strip(), segments=(len(context.segments) - 1,))
        return Stopped(reason="forced", budget="policy_tokens") if cut else Stopped(reason="answered")
