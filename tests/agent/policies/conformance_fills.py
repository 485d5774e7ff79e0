"""What every engine that gives ids must show in fills: forked contexts, their tokens, and that they can end anywhere.

The first turn is given, since the shipped checkpoint seldom writes `#A`; what is in the fills is the engine's own.
"""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from agent.loop.agent import Agent
from agent.loop.budgets import Budgets, Control
from agent.policies.base import Policy
from agent.trace import Event, Filled, Searched, Skipped, Trace
from agent.trace.samples import context_of, to_samples
from lab.benchmarks.fills.policies import Begun
from tests.agent.policies.engine_case import CAIRN, TWO_HOPS, EngineCase, sources
from tests.invariants import mask_violations

FIRST = (
    "<think>First the birthplace of Fisko Pornane, then the country.</think>\n<search>\n"
    "A: birthplace of Fisko Pornane (web)\nB: country of #A (kg)\nC: country of #A (web)\n</search>"
)


def whole(trace: Trace) -> None:
    """A trace with branches, whatever ended it."""
    assert [step.kind for step in trace.steps].count("stopped") == 1
    assert mask_violations(trace) == []
    assert list(trace.branches) == sorted(trace.branches)
    assert trace.usage.policy_tokens == sum(len(s.ids or ()) for s in trace.segments if s.by == "policy")
    for name, branch in trace.branches.items():
        own = [segment for segment in trace.segments if segment.branch == name]
        assert [segment.by for segment in own][:2] == ["environment", "loop"][: len(own)]
        assert trace.segments[branch.segment].text == FIRST
        assert context_of(trace, name)[:2] == [0, 1]


class ConformanceOfFills:
    """Two fills at the same time, of one parent."""

    @classmethod
    def filling(
        cls,
        case: EngineCase,
        *,
        budgets: Budgets | None = None,
        on: Callable[[Event, Control, "asyncio.Task[Trace]"], None] = lambda event, control, task: None,
        policy: Policy | None = None,
    ) -> Trace:
        if not case.exact:
            pytest.skip("it gives no ids")

        async def scene() -> Trace:
            begun = Begun(policy or case.policy, FIRST)
            agent, control = Agent(begun, CAIRN, sources(), budgets or Budgets()), Control()
            trace = agent.new_trace(TWO_HOPS)
            running: list[asyncio.Task[Trace]] = []
            task = asyncio.create_task(
                agent.run(trace, emit=lambda event: on(event, control, running[0]), control=control)
            )
            running.append(task)
            await asyncio.wait([task])
            assert task.cancelled() or task.exception() is None
            return trace

        trace = case.run(scene())
        whole(trace)
        return trace

    @pytest.fixture(scope="class")
    @classmethod
    def filled(cls, case: EngineCase) -> Trace:
        """A rollout that nothing ends early."""
        return cls.filling(case)

    def test_fills_run_in_branches_with_ids_of_their_own(self, filled: Trace):
        assert list(filled.branches) == ["1.B", "1.C"]
        assert [row.branch for row in to_samples(filled)] == ["main", "1.B", "1.C"]
        nodes = [step.node for step in filled.steps if isinstance(step, Filled | Skipped)]
        assert nodes[:2] == ["B", "C"]

    def test_equal_rollouts_have_equal_branches(self, case: EngineCase, filled: Trace):
        assert said(self.filling(case)) == said(filled)

    @pytest.mark.parametrize("most", [1, 40])
    def test_the_fills_share_the_tokens_that_are_left(self, case: EngineCase, filled: Trace, most: int):
        given = len(filled.segments[1].ids or ())
        budgets = Budgets(policy_tokens=given + 2 * most + 60, answer_tokens=60)
        trace = self.filling(case, budgets=budgets)
        assert trace.usage.policy_tokens <= budgets.policy_tokens
        for name in trace.branches:
            own = [s for s in trace.segments if s.branch == name and s.by == "policy"]
            assert sum(len(s.ids or ()) for s in own) <= most

    def test_the_answer_can_be_requested_while_queries_are_filled_in(self, case: EngineCase):
        def at_first_search(event: Event, control: Control, task: "asyncio.Task[Trace]") -> None:
            if isinstance(event, Searched):
                control.answer_now()

        trace = self.filling(case, on=at_first_search)
        assert trace.stopped is not None
        assert (trace.stopped.reason, trace.stopped.budget) == ("forced", "user")
        why = [step.why for step in trace.steps if isinstance(step, Skipped)]
        assert why == ["the user requested the answer"] * 2

    def test_a_rollout_can_be_cancelled_while_queries_are_filled_in(self, case: EngineCase):
        def at_first_search(event: Event, control: Control, task: "asyncio.Task[Trace]") -> None:
            if isinstance(event, Searched):
                task.cancel()

        trace = self.filling(case, on=at_first_search)
        assert trace.stopped is not None
        assert trace.stopped.reason == "cancelled"


def said(trace: Trace) -> Sequence[tuple[str, str, tuple[int, ...] | None]]:
    return [(segment.branch, segment.text, segment.ids) for segment in trace.segments]
