"""Budgets: when one ends, the policy still answers, with what there is."""

import asyncio
from collections.abc import Sequence

import pytest

from agent.errors import PolicyError
from agent.evidence import Passage
from agent.loop.agent import Agent, Budgets, Control
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.base import SearchRequest, SearchResult
from agent.trace import Delta, Event, Evidenced, Skipped, Trace
from tests.conftest import PLAN_TURN, Echo, Hanging, answer, make_agent

EVIDENCE_TURN = "\n- Frank Herbert wrote Dune. [1]\n</evidence>"
LAST_TURN = "Frank Herbert</answer>"
FORCED = [EVIDENCE_TURN, LAST_TURN]


def forced(trace: Trace) -> str | None:
    assert trace.stopped is not None
    assert trace.stopped.reason == "forced", trace.stopped
    return trace.stopped.budget


def by(trace: Trace, *authors: str) -> list[str]:
    return [segment.text for segment in trace.segments if segment.by in authors]


def rollout(turns: Sequence[str | Exception], budgets: Budgets) -> Trace:
    return answer([], agent=make_agent(list(turns), budgets=budgets))


@pytest.mark.parametrize(
    ("budgets", "budget"),
    [(Budgets(rounds=1), "rounds"), (Budgets(searches=2), "searches"), (Budgets(passages=2), "passages")],
)
def test_another_search_than_the_budget_allows_is_answered_by_opening_evidence_and_answer(
    budgets: Budgets, budget: str
):
    trace = rollout([PLAN_TURN, PLAN_TURN, *FORCED], budgets)
    assert forced(trace) == budget
    assert trace.answer == "Frank Herbert"
    assert by(trace, "loop") == ["\n<evidence>", "\n<answer>"]
    assert by(trace, "policy")[2:] == FORCED
    (evidence,) = (step for step in trace.steps if isinstance(step, Evidenced))
    assert evidence.claims[0].cites == (1,)
    assert [step.kind for step in trace.steps[-3:]] == ["evidenced", "answered", "stopped"]
    assert [step.segments for step in trace.steps[-3:-1]] == [(5,), (7,)]


def test_the_rounds_that_a_protocol_names_end_it_too():
    assert forced(rollout([PLAN_TURN] * 5 + FORCED, Budgets())) == "rounds"


def test_no_evidence_is_requested_when_nothing_was_shown():
    trace = rollout([PLAN_TURN, LAST_TURN], Budgets(rounds=0))
    assert (forced(trace), by(trace, "loop"), trace.answer) == ("rounds", ["\n<answer>"], "Frank Herbert")


def test_no_evidence_is_requested_in_a_protocol_without_it():
    agent = make_agent(["<search>a</search>", "<search>b</search>", LAST_TURN], protocol="multisearch")
    trace = answer([], agent=Agent(agent.policy, agent.protocol, agent.sources, Budgets(rounds=1)))
    assert (forced(trace), by(trace, "loop")) == ("rounds", ["\n<answer>"])


def test_no_second_evidence_is_requested():
    turn = "<evidence>- a [1]</evidence>" + PLAN_TURN
    trace = rollout([PLAN_TURN, turn, LAST_TURN], Budgets(rounds=1))
    assert by(trace, "loop") == ["\n<answer>"]


@pytest.mark.parametrize(
    ("open_text", "loop"),
    [
        ("<think>" + "a" * 900, ["</think>\n<evidence>", "\n<answer>"]),
        ("<search>A: x", ["</search>\n<evidence>", "\n<answer>"]),
        ("x" * 900, ["\n<evidence>", "\n<answer>"]),
    ],
)
def test_when_the_tokens_end_the_open_block_is_closed_first(open_text: str, loop: list[str]):
    text = open_text + "y" * 900
    trace = rollout([PLAN_TURN, text, *FORCED], Budgets(policy_tokens=600, answer_tokens=200))
    assert (forced(trace), by(trace, "loop"), trace.answer) == ("policy_tokens", loop, "Frank Herbert")
    assert trace.usage.policy_tokens <= 600
    assert "".join(by(trace, "policy")[:2]) == (PLAN_TURN + text)[: 600 - 200]


def test_an_open_evidence_block_is_gone_on_with_not_opened_again():
    turn = "<evidence>\n- " + "a" * 400
    trace = rollout([PLAN_TURN, turn, "bc. [1]\n</evidence>", LAST_TURN], Budgets(policy_tokens=400, answer_tokens=200))
    assert by(trace, "loop") == ["\n<answer>"]
    (evidence,) = (step for step in trace.steps if isinstance(step, Evidenced))
    assert evidence.text.endswith("aabc. [1]")
    assert evidence.segments == (3, 4)


def test_an_answer_that_was_begun_is_gone_on_with():
    trace = rollout(["<answer>" + "a" * 400, "b</answer>"], Budgets(policy_tokens=300, answer_tokens=200))
    assert (forced(trace), by(trace, "loop")) == ("policy_tokens", [])
    assert trace.answer == "a" * (100 - len("<answer>")) + "b"


def test_an_answer_that_does_not_end_is_cut_and_closed_by_the_loop():
    trace = rollout(["<think>" + "a" * 400, "b" * 400], Budgets(policy_tokens=300, answer_tokens=100))
    assert by(trace, "loop") == ["</think>\n<answer>", "</answer>"]
    assert trace.answer == "b" * 100
    assert trace.usage.policy_tokens == 300


def test_a_policy_that_wants_something_else_than_to_answer_has_answered_with_what_stands_before_it():
    events: list[Event] = []
    turn = "Frank Herbert</search>\n<think>I need more.</think><answer>I do not know</answer>"
    agent = make_agent([PLAN_TURN, PLAN_TURN, EVIDENCE_TURN, turn], budgets=Budgets(rounds=1))
    trace = asyncio.run(agent.run(agent.new_trace("Who wrote Dune?"), emit=events.append))
    assert (forced(trace), trace.answer) == ("rounds", "Frank Herbert")
    assert (
        "".join(event.text for event in events if isinstance(event, Delta) and event.role == "answer") == trace.answer
    )


def test_the_context_of_the_policy_is_a_budget():
    policy = ScriptedPolicy(["<think>" + "a" * 4000, LAST_TURN], context_tokens=1024)
    trace = answer([], agent=Agent(policy, protocol_named("cairn"), {"web": Echo()}))
    assert (forced(trace), trace.answer) == ("context", "Frank Herbert")
    assert sum(len(segment.text) for segment in trace.segments) <= 1024


def test_passages_are_cut_to_the_room_that_the_context_has():
    class Wordy(Echo):
        async def search(self, request: SearchRequest) -> SearchResult:
            numbers = range(request.limit)
            return SearchResult(
                tuple(Passage(id=str(n), source="web", title="T", text=f"{n} " + "word " * 100) for n in numbers)
            )

    policy = ScriptedPolicy(["<search>x (web)\ny (web)</search>", "<answer>a</answer>"], context_tokens=1200)
    trace = answer([], agent=Agent(policy, protocol_named("cairn"), {"web": Wordy()}))
    assert trace.answer == "a"
    assert trace.stopped is not None
    assert trace.stopped.reason == "answered"
    assert 1 <= len(trace.passages) < 4
    assert by(trace, "environment")[0].endswith("</information>\n")


def test_when_not_even_one_passage_fits_the_answer_is_forced():
    policy = ScriptedPolicy(["<search>x (web)</search>", LAST_TURN], context_tokens=100)
    trace = answer([], agent=Agent(policy, protocol_named("cairn"), {"web": Echo()}))
    assert (forced(trace), trace.answer, trace.passages) == ("context", "Frank Herbert", [])


def test_a_question_longer_than_the_context_is_said_to_be():
    policy = ScriptedPolicy([LAST_TURN], context_tokens=20)
    trace = answer([], agent=Agent(policy, protocol_named("cairn"), {"web": Echo()}))
    assert (forced(trace), trace.answer) == ("context", None)
    assert not trace.infrastructure


def test_a_plan_larger_than_the_budget_runs_as_far_as_it_goes_and_says_so():
    trace = rollout([PLAN_TURN, PLAN_TURN, *FORCED], Budgets(searches=1))
    (skipped,) = (step for step in trace.steps if isinstance(step, Skipped))
    assert (skipped.node, skipped.why) == ("B", "the budget of searches has ended")
    assert (trace.usage.searches, forced(trace)) == (1, "searches")


def test_paid_searches_stop_where_the_credits_end():
    class Paid(Echo):
        credits_per_search = 2.0

    agent = make_agent([PLAN_TURN, PLAN_TURN, *FORCED], sources={"web": Paid(), "news": Paid()})
    trace = answer([], agent=Agent(agent.policy, agent.protocol, agent.sources, Budgets(credits=3)))
    assert (trace.usage.credits, forced(trace), trace.answer) == (2.0, "credits", "Frank Herbert")


def test_when_the_time_ends_during_a_search_what_was_found_is_shown_and_the_rest_is_skipped():
    agent = make_agent([PLAN_TURN, *FORCED], sources={"web": Echo(), "news": Hanging()})
    trace = answer([], agent=Agent(agent.policy, agent.protocol, agent.sources, Budgets(seconds=0.05)))
    (skipped,) = (step for step in trace.steps if isinstance(step, Skipped))
    assert (skipped.node, skipped.why) == ("B", "the time has ended")
    assert (forced(trace), trace.answer, len(trace.passages)) == ("seconds", "Frank Herbert", 1)
    assert not trace.infrastructure


def test_the_user_can_have_the_answer_now():
    async def main() -> Trace:
        news, control = Hanging(), Control()
        agent = make_agent([PLAN_TURN, *FORCED], sources={"web": Echo(), "news": news})
        trace = agent.new_trace("Who wrote Dune?")
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            group.create_task(agent.run(trace, control=control))
            await news.requested.wait()
            control.answer_now()
            control.answer_now()
        return trace

    trace = asyncio.run(main())
    assert (forced(trace), trace.answer) == ("user", "Frank Herbert")
    assert [step.why for step in trace.steps if isinstance(step, Skipped)] == ["the user requested the answer"]


def test_the_answer_can_be_requested_before_anything_happened():
    async def main() -> Trace:
        control = Control()
        control.answer_now()
        agent = make_agent(["<think>" + "a" * 4000, LAST_TURN])
        async with asyncio.timeout(5):
            return await agent.run(agent.new_trace("Who wrote Dune?"), control=control)

    trace = asyncio.run(main())
    assert (forced(trace), trace.answer) == ("user", "Frank Herbert")


def test_a_chat_engine_gets_the_request_in_a_turn_of_the_users():
    policy = ScriptedPolicy([PLAN_TURN, PLAN_TURN, "<answer>Frank Herbert</answer>"], continues=False, instructed=True)
    agent = make_agent([])
    trace = answer([], agent=Agent(policy, agent.protocol, agent.sources, Budgets(rounds=1)))
    assert (forced(trace), trace.answer) == ("rounds", "Frank Herbert")
    assert by(trace, "loop") == [agent.protocol.force_text]
    assert "<answer>" in agent.protocol.force_text


@pytest.mark.parametrize(("turn", "said"), [("Frank Herbert", "Frank Herbert"), ("<answer>Frank", "Frank"), ("", None)])
def test_a_chat_engine_that_answers_without_its_tags_has_answered(turn: str, said: str | None):
    async def main() -> tuple[Trace, list[Event]]:
        policy = ScriptedPolicy([PLAN_TURN, turn], continues=False)
        agent = Agent(policy, protocol_named("cairn"), {"web": Echo()}, Budgets(rounds=0))
        trace = agent.new_trace("Who wrote Dune?")
        async with asyncio.timeout(5):
            return trace, [event async for event in agent.stream(trace)]

    trace, events = asyncio.run(main())
    assert trace.answer == said
    assert "".join(event.text for event in events if isinstance(event, Delta) and event.role == "answer") == (
        said or ""
    )


def test_a_begun_answer_and_the_one_that_is_forced_behind_it_are_two_paragraphs():
    async def main() -> tuple[Trace, list[Event]]:
        turns = ["<answer>Frank" + "k" * 400, "<answer>Frank Herbert</answer>"]
        policy = ScriptedPolicy(turns, continues=False)
        agent = Agent(policy, protocol_named("cairn"), {"web": Echo()}, Budgets(policy_tokens=300, answer_tokens=200))
        trace = agent.new_trace("Who wrote Dune?")
        async with asyncio.timeout(5):
            return trace, [event async for event in agent.stream(trace)]

    trace, events = asyncio.run(main())
    assert (forced(trace), trace.answer) == ("policy_tokens", "Frank Herbert")
    streamed = "".join(event.text for event in events if isinstance(event, Delta) and event.role == "answer")
    begun, _, answered = streamed.partition("\n\n")
    assert (begun[:6], answered) == ("Frankk", "Frank Herbert")


def test_an_engine_that_fails_while_the_answer_is_forced_is_an_engine_failure():
    trace = rollout([PLAN_TURN, PolicyError("gone")], Budgets(rounds=0))
    assert trace.stopped is not None
    assert (trace.stopped.reason, trace.infrastructure, trace.answer) == ("engine", True, None)


def test_a_policy_that_gives_no_answer_even_then_is_forced_without_one():
    trace = rollout([PLAN_TURN, "</answer>"], Budgets(rounds=0))
    assert (forced(trace), trace.answer) == ("rounds", None)
