"""What every engine must show when it dies: every turn is an error, and every rollout says so on its trace.

A test class inherits it and gives the fixture `case`; see `tests.agent.policies.engine_case`. Named as the first of its
bases, it comes after the others: where a start takes long, `dying` may end the engine that they used.
"""

import asyncio

import pytest

from agent.errors import PolicyError
from agent.policies.base import Policy
from tests.agent.policies.conformance import LONG
from tests.agent.policies.conformance_rollouts import agent, agrees, ended
from tests.agent.policies.engine_case import CAIRN, ONE_HOP, TWO_HOPS, EngineCase, ask_until_it_fails, turn


class ConformanceOfDeaths:
    """Turns and rollouts at the same time, of one engine."""

    def test_an_engine_that_dies_is_an_error_of_its_turns_and_on_its_traces_and_hangs_no_one(self, case: EngineCase):
        async def scene():
            async with case.dying() as policy:
                rollouts = [agent(policy) for _ in range(3)]
                traces = await asyncio.gather(
                    *(one.run(one.new_trace(TWO_HOPS)) for one in rollouts), _turns_fail(policy)
                )
                return traces[:-1]

        for trace in case.run(scene()):
            assert trace is not None
            assert ended(trace) == ("engine", None)
            assert trace.infrastructure
            assert trace.stopped is not None
            assert trace.stopped.detail
            agrees(trace, exact=case.exact)


async def _turns_fail(policy: Policy) -> None:
    context = policy.open(CAIRN, ONE_HOP)
    others = [asyncio.create_task(turn(policy.open(CAIRN, ONE_HOP), max_tokens=LONG)) for _ in range(3)]
    with pytest.raises(PolicyError):
        await ask_until_it_fails(context)
    for segment in context.segments[1:]:
        assert segment.by == "policy"
        assert segment.ids is None or len(segment.ids) == len(segment.logprobs or ())
    with pytest.raises(PolicyError):
        await turn(policy.open(CAIRN, ONE_HOP), max_tokens=LONG)
    await asyncio.gather(*others, return_exceptions=True)
