"""Real engines in fills: the traces of the embedded policy and of the oracle agree with themselves, token by token."""

import asyncio
from itertools import islice

from agent.build.shipped import newest_checkpoint
from agent.loop.agent import Agent
from agent.policies.checkpoint import open_checkpoint
from agent.policies.embedded import EmbeddedPolicy
from agent.protocols import protocol_named
from agent.trace import Trace
from agent.world import load_world
from lab.benchmarks.fills.measure import chains
from lab.benchmarks.fills.policies import Begun, OraclePolicy, script
from tests.invariants import violations
from train.sft.episodes import episode

CAIRN = protocol_named("cairn")


def test_branches_of_a_real_engine_hold_every_invariant():
    async def main() -> tuple[list[Trace], EmbeddedPolicy]:
        world = load_world("test-v2")
        policy = EmbeddedPolicy.load(newest_checkpoint())
        traces: list[Trace] = []
        try:
            async with asyncio.timeout(100):
                for question in islice(chains(world, CAIRN, hops=[2]), 3):
                    first = (await asyncio.to_thread(episode, world, question, CAIRN, fill=True)).pieces[1].text
                    agent = Agent(Begun(policy, first), CAIRN, world.sources())
                    traces.append(await agent.run(agent.new_trace(question.question)))
        finally:
            await policy.aclose()
        return traces, policy

    traces, policy = asyncio.run(main())
    assert all(trace.branches for trace in traces)
    for trace in traces:
        assert violations(trace, CAIRN, decode=policy.checkpoint.codec.decode) == []
        assert all(segment.ids is not None for segment in trace.segments)


def test_a_chain_of_three_hops_is_one_round_of_two_fills_one_after_the_other():
    world = load_world("test-v2")
    codec = open_checkpoint(newest_checkpoint()).codec
    question = next(chains(world, CAIRN, hops=[3]))

    said = script(episode(world, question, CAIRN, fill=True), codec)

    async def main() -> Trace:
        agent = Agent(OraclePolicy(said, codec, 0.0), CAIRN, world.sources())
        return await agent.run(agent.new_trace(question.question))

    trace = asyncio.run(main())
    assert violations(trace, CAIRN, decode=codec.decode) == []
    assert [step.kind for step in trace.steps if step.kind in ("filled", "searched")][:3] == [
        "searched",
        "filled",
        "searched",
    ]
    assert len(trace.branches) >= 2
    assert trace.answer in question.answers
