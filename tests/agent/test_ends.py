"""Every way in which a rollout ends, with every budget, while it thinks, searches or fills in a query."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import PolicyError
from agent.loop.agent import Agent
from agent.loop.budgets import Budgets, Control
from agent.policies.scripted import ScriptedPolicy, Turn
from agent.protocols import protocol_named
from agent.sources.base import Source
from agent.trace import Skipped, Trace
from tests import virtual_clock
from tests.agent.test_fills import LAST, PLAN, saying
from tests.conftest import Echo, Hanging
from tests.engines import Stalling
from tests.invariants import violations

CAIRN = protocol_named("cairn")
FILL = {"B": "birthplace of Lina Orr</fill>"}
LONG = {"B": "b" * 400}
BESIDE = "<search>\nA: x (web)\nB: of #A (kg)\nC: y (news)\n</search>"


class Paid(Echo):
    credits_per_search = 1.0


def sources(**others: Source) -> dict[str, Source]:
    return {name: Echo(name) for name in ("web", "news", "kg", "all")} | others


def again(fills: dict[str, str]) -> Callable[[str], Turn]:
    """It searches for ever, with a fill in each round."""
    once = saying(PLAN, fills)

    def turn(context: str) -> Turn:
        said = once(context)
        return PLAN if said == LAST else said

    return turn


def rollout(
    policy: ScriptedPolicy,
    budgets: Budgets | None = None,
    *,
    given: dict[str, Source] | None = None,
    when: Callable[[Control], None] | None = None,
) -> Trace:
    async def main() -> Trace:
        control = Control()
        agent = Agent(policy, CAIRN, given or sources(), budgets or Budgets())
        trace = agent.new_trace("q")
        async with asyncio.TaskGroup() as group:
            group.create_task(agent.run(trace, control=control))
            if when is not None:
                await asyncio.sleep(1)
                when(control)
        return trace

    trace = virtual_clock.run(main())
    assert not violations(trace, CAIRN)
    return trace


ENDS: dict[str, tuple[ScriptedPolicy, Budgets, dict[str, Source], bool]] = {
    "rounds": (ScriptedPolicy(again(FILL)), Budgets(rounds=2), sources(), False),
    "searches": (ScriptedPolicy(again(FILL)), Budgets(searches=3), sources(), False),
    "passages": (ScriptedPolicy(again(FILL)), Budgets(passages=2), sources(), False),
    "policy_tokens": (ScriptedPolicy(saying(PLAN, LONG)), Budgets(policy_tokens=400), sources(), False),
    "context": (ScriptedPolicy(again(FILL)), Budgets(context_tokens=900), sources(), False),
    "credits": (ScriptedPolicy(again(FILL)), Budgets(credits=3), sources(web=Paid(), kg=Paid()), False),
    "seconds": (Stalling(saying(PLAN, {"B": "of"})), Budgets(seconds=3), sources(), False),
    "user": (Stalling(saying(PLAN, {"B": "of"})), Budgets(), sources(), True),
}


@pytest.mark.parametrize("budget", ENDS)
def test_every_budget_ends_a_rollout_with_fills_and_the_policy_still_answers(budget: str):
    policy, budgets, given, now = ENDS[budget]
    trace = rollout(policy, budgets, given=given, when=Control.answer_now if now else None)
    assert trace.stopped is not None
    assert (trace.stopped.reason, trace.stopped.budget) == ("forced", budget)
    assert trace.answer == "Trieste"
    assert trace.branches
    assert not trace.infrastructure


@pytest.mark.parametrize(
    ("fill", "given", "where"),
    [("of", sources(), "fill"), ("of x</fill>", sources(kg=Hanging()), "search after the fill")],
)
def test_the_time_may_end_in_a_fill_or_in_the_search_that_it_asks_for(fill: str, given: dict[str, Source], where: str):
    trace = rollout(Stalling(saying(PLAN, {"B": fill})), Budgets(seconds=3), given=given)
    assert [(step.node, step.why) for step in trace.steps if isinstance(step, Skipped)] == [("B", "the time has ended")]
    assert ("filled" in [step.kind for step in trace.steps]) == (where != "fill")
    assert trace.stopped is not None
    assert (trace.stopped.budget, trace.answer) == ("seconds", "Trieste")
    assert [passage.node for passage in trace.passages] == ["A"]


def test_what_a_stranger_node_found_is_shown_when_the_user_cuts_a_fill():
    trace = rollout(Stalling(saying(BESIDE, {"B": "of"})), when=Control.answer_now)
    assert [passage.node for passage in trace.passages] == ["A", "C"]
    assert trace.stopped is not None
    assert trace.stopped.budget == "user"


def test_an_engine_that_dies_in_a_fill_is_no_fault_of_the_policy():
    trace = rollout(ScriptedPolicy(saying(BESIDE, {"B": PolicyError("gone")})), given=sources(news=Hanging()))
    assert trace.stopped is not None
    assert (trace.stopped.reason, trace.stopped.detail, trace.infrastructure) == ("engine", "gone", True)
    assert trace.answer is None


def test_bad_format_is_no_fault_of_a_fill():
    trace = rollout(ScriptedPolicy(saying(PLAN, FILL, last="hm")))
    assert trace.stopped is not None
    assert trace.stopped.reason == "bad_format"
    assert trace.branches


@given(st.integers(0, 120), st.sampled_from([PLAN, BESIDE]), st.booleans())
def test_a_rollout_with_fills_can_be_cancelled_at_any_await(after: int, plan: str, stalls: bool):
    async def main() -> Trace:
        policy = Stalling(saying(plan, {"B": "of"})) if stalls else ScriptedPolicy(saying(plan, FILL))
        agent = Agent(policy, CAIRN, sources())
        trace = agent.new_trace("q")
        running = asyncio.create_task(agent.run(trace))
        for _ in range(after):
            await asyncio.sleep(0)
        running.cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(running, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return trace

    trace = asyncio.run(main())
    assert not violations(trace, CAIRN)
    assert [step.kind for step in trace.steps].count("stopped") == (1 if trace.segments else 0)


def test_a_cancelled_fill_leaves_what_was_sampled_on_the_trace():
    async def main() -> Trace:
        policy = Stalling(saying(PLAN, {"B": "birthplace of"}))
        agent = Agent(policy, CAIRN, sources())
        trace = agent.new_trace("q")
        running = asyncio.create_task(agent.run(trace))
        await policy.waits.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return trace

    trace = virtual_clock.run(main())
    assert trace.stopped is not None
    assert trace.stopped.reason == "cancelled"
    assert [segment.text for segment in trace.segments if segment.branch == "1.B"][-1] == "birthplace of"
    assert trace.usage.policy_tokens == len(PLAN + "birthplace of")
