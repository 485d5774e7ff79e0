"""What every engine must show under the real loop: every way in which a rollout ends, and that it can end anywhere.

A test class inherits it and gives the fixture `case`; see `tests.agent.policies.engine_case`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from agent.loop.agent import Agent
from agent.loop.budgets import Budgets, Control
from agent.policies.base import Policy
from agent.protocols.base import Mark
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.trace import BudgetName, Event, Planned, Trace
from agent.trace.io import timeless
from tests.agent.policies.engine_case import CAIRN, ONE_HOP, TWO_HOPS, EngineCase, sources

DEAF = CAIRN.model_copy(
    update={
        "tags": CAIRN.tags
        | {"search": Mark(open="<ask>", close="</ask>"), "answer": Mark(open="<say>", close="</say>")}
    }
)
"""A protocol whose search and answer no policy here ever writes."""


@dataclass(frozen=True)
class Dear:
    """A source whose every search costs one credit."""

    source: Source
    credits_per_search: float = 1.0

    async def search(self, request: SearchRequest) -> SearchResult:
        return await self.source.search(request)


class Hanging:
    """A source that never answers."""

    async def search(self, request: SearchRequest) -> SearchResult:
        await asyncio.Event().wait()
        raise AssertionError("no one sets this event")


def agent(
    policy: Policy, *, budgets: Budgets | None = None, searched: Mapping[str, Source] | None = None, deaf: bool = False
) -> Agent:
    return Agent(policy, DEAF if deaf else CAIRN, searched or sources(), budgets or Budgets())


def ended(trace: Trace) -> tuple[str, str | None]:
    assert trace.stopped is not None
    return trace.stopped.reason, trace.stopped.budget


def agrees(trace: Trace, *, exact: bool) -> None:
    """A trace is whole whatever ended it."""
    assert [step.kind for step in trace.steps].count("stopped") == 1
    assert trace.steps[-1].kind == "stopped"
    assert all(0 <= at < len(trace.segments) for step in trace.steps for at in step.segments)
    assert Trace.model_validate_json(trace.model_dump_json()) == trace
    if not exact:
        return
    for segment in trace.segments:
        assert segment.ids is not None
        assert (segment.logprobs is not None) == (segment.by == "policy")
        assert segment.logprobs is None or len(segment.logprobs) == len(segment.ids)
    said = sum(len(segment.ids or ()) for segment in trace.segments if segment.by == "policy")
    assert trace.usage.policy_tokens == said


class ConformanceOfRollouts:
    """Whole rollouts on the test world."""

    @classmethod
    def rollout(
        cls,
        case: EngineCase,
        budgets: Budgets | None = None,
        *,
        question: str = ONE_HOP,
        searched: Mapping[str, Source] | None = None,
        deaf: bool = False,
    ) -> Trace:
        async def scene() -> Trace:
            one = agent(case.policy, budgets=budgets, searched=searched, deaf=deaf)
            return await one.run(one.new_trace(question))

        trace = case.run(scene())
        agrees(trace, exact=case.exact)
        return trace

    @pytest.fixture(scope="class")
    @classmethod
    def alone(cls, case: EngineCase) -> dict[str, Trace]:
        """By question: a rollout that nothing ends early, with no other beside it."""
        return {question: cls.rollout(case, question=question) for question in (ONE_HOP, TWO_HOPS)}

    @pytest.fixture(scope="class")
    @classmethod
    def places(cls, case: EngineCase) -> list[int]:
        """After how many events a rollout is interrupted: before and at the first ones, at the first of every kind, and
        in the middle and at the end of what is said.
        """
        events: list[Event] = []

        async def scene() -> None:
            one = agent(case.policy)
            await one.run(one.new_trace(ONE_HOP), emit=events.append)

        case.run(scene())
        first = {event.kind: at for at, event in reversed(list(enumerate(events, start=1)))}
        return sorted({0, 1, 2, len(events) // 2, len(events) - 1, *first.values()})

    # Every reason

    @pytest.mark.parametrize(("question", "rounds"), [(ONE_HOP, 1), (TWO_HOPS, 2)])
    def test_a_question_is_answered_after_its_rounds(self, alone: dict[str, Trace], question: str, rounds: int):
        trace = alone[question]
        assert (ended(trace), trace.usage.rounds) == (("answered", None), rounds)
        assert trace.answer
        assert [segment.by for segment in trace.segments] == ["prompt", "policy", *["environment", "policy"] * rounds]

    @pytest.mark.parametrize(
        ("budgets", "budget"),
        [
            (Budgets(rounds=0), "rounds"),
            (Budgets(rounds=1), "rounds"),
            (Budgets(searches=0), "searches"),
            (Budgets(passages=0), "passages"),
            (Budgets(credits=0.5), "credits"),
        ],
    )
    def test_what_searching_may_cost_ends_it_and_it_answers(
        self, case: EngineCase, budgets: Budgets, budget: BudgetName
    ):
        dear = {name: Dear(source) for name, source in sources().items()}
        trace = self.rollout(case, budgets, question=TWO_HOPS, searched=dear)
        assert ended(trace) == ("forced", budget)
        assert trace.answer

    def test_the_policys_tokens_end_it_and_it_answers(self, case: EngineCase):
        trace = self.rollout(case, Budgets(policy_tokens=60, answer_tokens=40))
        assert ended(trace) == ("forced", "policy_tokens")
        assert trace.answer
        if case.exact:
            assert trace.usage.policy_tokens <= 60

    def test_the_end_of_the_context_ends_it_and_it_answers(self, case: EngineCase):
        tokens = case.open().tokens + 70
        trace = self.rollout(case, Budgets(context_tokens=tokens, answer_tokens=tokens // 4))
        assert ended(trace) == ("forced", "context")
        assert trace.answer
        if case.exact:
            last = len(trace.segments[-1].ids or ()) if trace.segments[-1].by == "loop" else 0
            assert sum(len(segment.ids or ()) for segment in trace.segments) - last <= tokens

    def test_an_answer_that_fills_the_context_to_its_end_is_kept(self, case: EngineCase):
        if not case.exact:
            pytest.skip("it only estimates")
        most = case.policy.context_tokens
        filler = "7" * (most - case.open("").tokens - 45)
        trace = self.rollout(case, Budgets(answer_tokens=30), question=f"{filler}{ONE_HOP[:5]}")
        assert ended(trace) == ("forced", "context")
        assert trace.answer
        assert sum(len(segment.ids or ()) for segment in trace.segments) <= most

    def test_a_search_that_hangs_is_cut_when_the_answer_is_requested(self, case: EngineCase):
        hanging = dict.fromkeys(sources(), Hanging())

        async def scene() -> Trace:
            searching = asyncio.Event()

            def stop_at(event: Event) -> None:
                if event.kind == "planned":
                    searching.set()

            control = Control()
            one = agent(case.policy, searched=hanging)
            trace = one.new_trace(ONE_HOP)
            running = asyncio.create_task(one.run(trace, emit=stop_at, control=control))
            await searching.wait()
            control.answer_now()
            return await running

        trace = case.run(scene())
        assert ended(trace) == ("forced", "user")
        (plan,) = (step.plan for step in trace.steps if isinstance(step, Planned))
        assert [step.kind for step in trace.steps].count("skipped") == len(plan.nodes)
        assert trace.answer

    def test_the_time_ends_a_slow_engine_and_it_answers(self, case: EngineCase):
        trace = self.rollout(case, Budgets(seconds=0))
        assert ended(trace) == ("forced", "seconds")
        assert trace.answer

    def test_an_engine_that_is_too_slow_even_for_the_answer_is_not_waited_for(self, case: EngineCase):
        trace = self.rollout(case, Budgets(seconds=0, answer_seconds=0))
        assert ended(trace) == ("forced", "seconds")
        assert trace.stopped is not None
        assert not any(segment.text.endswith("</answer>") for segment in trace.segments if segment.by == "policy")
        if trace.answer:  # what it had said of it before it was cut
            assert "<" not in trace.answer
        else:
            assert trace.stopped.detail == "the policy gave no answer"

    def test_a_turn_with_neither_a_search_nor_an_answer_is_bad_format(self, case: EngineCase):
        trace = self.rollout(case, deaf=True)
        assert ended(trace) == ("bad_format", None)
        assert trace.answer is None

    # Anywhere

    def test_it_can_be_cancelled_at_any_event(self, case: EngineCase, alone: dict[str, Trace], places: list[int]):
        whole = alone[ONE_HOP]
        for trace in case.run(_interrupted(case, places, lambda task, control: task.cancel())):
            assert ended(trace) in {("cancelled", None), ("answered", None)}
            agrees(trace, exact=case.exact)
            begun = "".join(segment.text for segment in trace.segments)
            assert "".join(segment.text for segment in whole.segments).startswith(begun)
        again = self.rollout(case)
        assert [segment.text for segment in again.segments] == [segment.text for segment in whole.segments]

    def test_the_answer_can_be_requested_at_any_event(self, case: EngineCase, places: list[int]):
        for trace in case.run(_interrupted(case, places, lambda task, control: control.answer_now())):
            assert ended(trace) in {("forced", "user"), ("answered", None)}
            assert trace.answer
            agrees(trace, exact=case.exact)

    # The same again

    def test_rollouts_repeat_alone_and_in_company(self, case: EngineCase, alone: dict[str, Trace]):
        async def scene() -> Sequence[Trace]:
            one = agent(case.policy)
            return await asyncio.gather(*(one.run(one.new_trace(q)) for q in [ONE_HOP, TWO_HOPS] * 3))

        again = self.rollout(case)
        assert timeless(again) == timeless(alone[ONE_HOP]).model_copy(update={"id": timeless(again).id})
        for one, other in zip(case.run(scene()), list(alone.values()) * 3, strict=True):
            assert [step.kind for step in one.steps] == [step.kind for step in other.steps]
            assert [(s.text, s.ids) for s in one.segments] == [(s.text, s.ids) for s in other.segments]
            for mine, yours in zip(one.segments, other.segments, strict=True):
                assert mine.logprobs == (yours.logprobs and pytest.approx(yours.logprobs, abs=case.tolerance))


End = Callable[["asyncio.Task[Trace]", Control], object]


async def _interrupted(case: EngineCase, places: Sequence[int], end: End) -> Sequence[Trace]:
    """Rollouts, all at once, in each of which `end` is called after another number of events."""
    return await asyncio.gather(*(_interrupted_after(case, after, end) for after in places))


async def _interrupted_after(case: EngineCase, after: int, end: End) -> Trace:
    seen = 0
    control = Control()
    one = agent(case.policy)
    trace = one.new_trace(ONE_HOP)

    def end_at(event: Event) -> None:
        nonlocal seen
        seen += 1
        if seen == after:
            end(running, control)

    running = asyncio.create_task(one.run(trace, emit=end_at, control=control))
    if after == 0:
        end(running, control)
    await asyncio.gather(running, return_exceptions=True)
    if trace.stopped is None:  # cancelled before it began
        return await one.run(trace)
    return trace
