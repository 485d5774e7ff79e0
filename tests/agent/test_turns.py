"""What a protocol may say about a turn: who speaks when, the reply to an empty turn, how long it is, where it answers."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.loop.budgets import Budgets
from agent.policies.base import Chunk, Sampling
from agent.policies.scripted import ScriptedContext, ScriptedPolicy
from agent.protocols import TextProtocol, protocol_named
from agent.protocols.chat import CHAT_TEMPLATES
from agent.sources.base import SearchRequest, SearchResult
from agent.trace import Gathered, Planned, PlanRejected, Restated, Trace
from tests.conftest import ANSWER_TURN, PLAN_TURN, Echo, answer
from tests.engines import Overrunning
from tests.invariants import violations

CAIRN = protocol_named("cairn")
SOURCES = {name: Echo(name) for name in ("web", "news", "all")}
INVALID = "\nThat was neither a search nor an answer. Try <search> again.\n"
CHAT = CAIRN.model_copy(
    update={
        "chat": CHAT_TEMPLATES["chatml"],
        "deliver": "user",
        "prompt": "Question: {question}",
        "system": "You search.",
        "wrapper": "<information>\n{passages}\n</information>",
    }
)
SHOWN = (
    "<information>\n[1] A · web · who wrote Dune — All about who wrote Dune.\n"
    "[2] B · news · when was Dune published — All about when was Dune published.\n</information>"
)


def rollout(
    turns: list[str], protocol: TextProtocol, budgets: Budgets | None = None, *, policy: ScriptedPolicy | None = None
) -> Trace:
    agent = Agent(policy or ScriptedPolicy(turns), protocol, SOURCES, budgets or Budgets())
    trace = answer([], agent=agent)
    assert not violations(trace, protocol, templated=protocol.deliver == "user")
    return trace


def written(trace: Trace) -> list[tuple[str, str]]:
    return [(segment.by, segment.text) for segment in trace.segments[1:]]


def ended(trace: Trace) -> tuple[str, str | None]:
    assert trace.stopped is not None
    return trace.stopped.reason, trace.stopped.budget


def kinds(trace: Trace) -> list[str]:
    return [step.kind for step in trace.steps]


# Whose turn it is


def test_the_environment_speaks_in_a_turn_of_the_users_and_the_policy_gets_a_new_one():
    trace = rollout([PLAN_TURN, ANSWER_TURN], CHAT)
    assert trace.segments[0].text == (
        "<|im_start|>system\nYou search.<|im_end|>\n"
        "<|im_start|>user\nQuestion: Who wrote Dune?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert written(trace) == [
        ("policy", PLAN_TURN),
        ("loop", "<|im_end|>\n<|im_start|>user\n"),
        ("environment", SHOWN),
        ("loop", "<|im_end|>\n<|im_start|>assistant\n"),
        ("policy", ANSWER_TURN),
    ]
    (gathered,) = (step for step in trace.steps if isinstance(step, Gathered))
    assert gathered.segments == (3,)


def test_a_turn_that_the_policy_ended_itself_is_not_ended_twice():
    protocol = CHAT.model_copy(update={"stops": ("answer",), "several": True})
    trace = rollout([PLAN_TURN, ANSWER_TURN], protocol)
    assert written(trace)[1] == ("loop", "\n<|im_start|>user\n")
    assert trace.answer == "Frank Herbert"


def test_what_begins_a_turn_stands_before_each_and_is_read_from_inside():
    protocol = CHAT.model_copy(update={"begins": "<think>\n"})
    trace = rollout(["hm</think><search>x</search>", "so</think><answer>y</answer>"], protocol)
    assert trace.segments[0].text.endswith("<|im_start|>assistant\n<think>\n")
    assert written(trace)[3] == ("loop", "<|im_end|>\n<|im_start|>assistant\n<think>\n")
    assert [step.text for step in trace.steps if step.kind == "thought"] == ["hm", "so"]


def test_the_forced_answer_of_a_turn_that_ended_comes_in_a_new_turn():
    protocol = CHAT.model_copy(update={"stops": ("answer",), "several": True})
    turns = [PLAN_TURN, PLAN_TURN, "\n- x [1]\n</evidence>", "Herbert</answer>"]
    trace = rollout(turns, protocol, Budgets(rounds=1))
    assert (ended(trace), trace.answer) == (("forced", "rounds"), "Herbert")
    said = "".join(text for _, text in written(trace))
    assert f"<|im_start|>user\n{protocol.force_text}<|im_end|>\n<|im_start|>assistant\n<evidence>" in said


def test_a_chat_engine_gets_messages_and_no_template():
    policy = ScriptedPolicy([PLAN_TURN, ANSWER_TURN], continues=False, instructed=True)
    trace = answer([], agent=Agent(policy, CHAT, SOURCES))
    assert [by for by, _ in written(trace)] == ["policy", "environment", "policy"]


# A turn that says nothing


def test_a_turn_with_neither_a_search_nor_an_answer_gets_the_exact_reply_and_is_a_round():
    protocol = CAIRN.model_copy(update={"invalid": INVALID})
    trace = rollout(["I wonder.", PLAN_TURN, ANSWER_TURN], protocol)
    assert written(trace)[1] == ("environment", INVALID)
    (rejected,) = (step for step in trace.steps if isinstance(step, PlanRejected))
    assert (rejected.round, rejected.why) == (1, "the policy's turn ended with neither a search nor an answer")
    assert rejected.segments == (1,)
    assert (trace.usage.rounds, trace.answer) == (2, "Frank Herbert")


def test_a_policy_that_never_says_anything_is_forced_when_its_rounds_end():
    protocol = CAIRN.model_copy(update={"invalid": INVALID})
    trace = rollout(["hm"] * 5 + ["x</answer>"], protocol)
    assert (ended(trace), trace.answer, trace.usage.rounds) == (("forced", "rounds"), "x", 4)


def test_without_such_a_text_the_rollout_ends_as_bad_format():
    assert ended(rollout(["hm"], CAIRN)) == ("bad_format", None)


# Several searches in one turn


def test_several_search_blocks_of_one_turn_are_one_plan():
    protocol = CAIRN.model_copy(update={"several": True, "stops": ("answer",)})
    trace = rollout(["<search>a (web)</search> and <search>b (news)</search>", ANSWER_TURN], protocol)
    (planned,) = (step for step in trace.steps if isinstance(step, Planned))
    assert [(node.id, node.query, node.source) for node in planned.plan.nodes] == [
        ("A", "a", "web"),
        ("B", "b", "news"),
    ]
    assert trace.usage.rounds == 1


def test_an_answer_beside_a_search_ends_the_rollout():
    protocol = CAIRN.model_copy(update={"several": True, "stops": ("answer",)})
    trace = rollout(["<search>a (web)</search><answer>x</answer>"], protocol)
    assert (ended(trace), trace.answer, trace.usage.searches) == (("answered", None), "x", 0)


# Lengths


@pytest.mark.parametrize(("invalid", "end"), [("", ("bad_format", None)), (INVALID, ("answered", None))])
def test_a_turn_longer_than_the_protocol_allows_is_a_turn_that_says_nothing(invalid: str, end: tuple[str, None]):
    protocol = CAIRN.model_copy(update={"turn_tokens": 30, "invalid": invalid})
    trace = rollout(["<think>" + "a" * 90, "<answer>x</answer>"], protocol)
    assert ended(trace) == end
    assert len(trace.segments[1].ids or ()) == 30


def test_where_a_budget_is_shorter_than_the_protocols_turn_it_is_the_budget_that_ends():
    protocol = CAIRN.model_copy(update={"turn_tokens": 500, "invalid": INVALID})
    trace = rollout(["<think>" + "a" * 900, "x</answer>"], protocol, Budgets(policy_tokens=300, answer_tokens=100))
    assert ended(trace) == ("forced", "policy_tokens")


class Wordy(Echo):
    async def search(self, request: SearchRequest) -> SearchResult:
        query, numbers = request.query, range(request.limit)
        return SearchResult(
            tuple(Passage(id=f"{query}{n}", source="web", title="T", text=f"{n} " + "word " * 60) for n in numbers)
        )


@given(st.integers(0, 900), st.integers(1, 3))
def test_passages_are_cut_until_the_wrapped_text_has_the_protocols_tokens(tokens: int, searches: int):
    protocol = CAIRN.model_copy(update={"budget_tokens": tokens})
    plan = "<search>" + "".join(f"{n} words (web)\n" for n in range(searches)) + "</search>"
    policy = ScriptedPolicy([plan, "x</answer>" if 0 < tokens < 100 else ANSWER_TURN, "x</answer>"])
    trace = answer([], agent=Agent(policy, protocol, {"web": Wordy()}))
    assert not violations(trace, protocol)
    for segment in trace.segments:
        if segment.by == "environment" and tokens:
            assert len(segment.ids or ()) <= tokens
            assert segment.text.endswith("\n</information>\n")
    if tokens > 400:
        assert len({passage.node for passage in trace.passages}) == searches  # each query keeps its best


# Numbers


def test_numbers_start_again_for_each_query_and_a_repeat_of_another_query_is_shown():
    class Same(Echo):
        async def search(self, request: SearchRequest) -> SearchResult:
            return SearchResult(
                tuple(Passage(id=f"{n}", source="web", title="T", text=f"text {n}") for n in range(request.limit))
            )

    protocol = CAIRN.model_copy(update={"numbering": "query", "passages": 2})
    turn = "<search>a (web)\nb (web)</search>"
    trace = answer([], agent=Agent(ScriptedPolicy([turn, turn, ANSWER_TURN]), protocol, {"web": Same()}))
    assert not violations(trace, protocol)
    assert [(p.node, p.number) for p in trace.passages] == [("A", 1), ("A", 2), ("B", 1), ("B", 2)] * 2


def test_what_was_shown_may_be_shown_again_where_the_protocol_says_so():
    protocol = CAIRN.model_copy(update={"shows_again": True})
    turn = "<search>a (web)</search>"
    trace = rollout([turn, turn, ANSWER_TURN], protocol)
    assert [passage.number for passage in trace.passages] == [1, 2]


def test_passages_are_joined_as_the_protocol_says():
    protocol = CAIRN.model_copy(update={"joiner": "\n\n"})
    trace = rollout([PLAN_TURN, ANSWER_TURN], protocol)
    assert "Dune.\n\n[2]" in trace.segments[2].text


# Answers and questions


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"It is \boxed{Frank Herbert}.", "Frank Herbert"),
        (r"\boxed{a} or \boxed{b}", "b"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{the set \{1, 2\}}", r"the set \{1, 2\}"),
        (r"\boxed{a} or \boxed{b", "a"),
        ("Frank Herbert", "Frank Herbert"),
        (r"\boxed{ }", None),
        (r"it is \boxed{Frank", None),
        ("I think so.\nFrank Herbert", None),
    ],
)
def test_the_answer_stands_in_the_last_box_or_is_the_bare_text_of_one_line(text: str, said: str | None):
    protocol = CAIRN.model_copy(update={"answer_in": "boxed"})
    trace = rollout([f"<answer>{text}</answer>"], protocol)
    assert trace.answer == said
    assert ended(trace)[0] == ("bad_format" if said is None else "answered")


@pytest.mark.parametrize(("turn", "said"), [(r"\boxed{x}</answer>", "x"), ("it is\nx</answer>", "it is\nx")])
def test_a_forced_answer_without_its_box_is_taken_as_it_is(turn: str, said: str):
    protocol = CAIRN.model_copy(update={"answer_in": "boxed"})
    assert rollout([PLAN_TURN, turn], protocol, Budgets(rounds=0)).answer == said


def test_the_question_as_the_policy_puts_it_is_a_step():
    trace = rollout(["<question>Who wrote the novel Dune?</question>\n" + PLAN_TURN, ANSWER_TURN], CAIRN)
    assert kinds(trace)[:2] == ["restated", "thought"]
    assert [step.text for step in trace.steps if isinstance(step, Restated)] == ["Who wrote the novel Dune?"]


# Tokens that go on behind a stop text


@pytest.mark.parametrize(
    ("tail", "left"),
    [("\n", "<information>"), (" ", "\n<information>"), ("\n\n", "<information>"), ("", "\n<information>")],
)
def test_white_space_that_the_last_token_brought_is_not_said_again(tail: str, left: str):
    policy = Overrunning([PLAN_TURN, ANSWER_TURN], tail=tail)
    trace = rollout([], CAIRN, policy=policy)
    assert trace.segments[1].text == PLAN_TURN + tail
    assert trace.segments[2].text.startswith(left)
    assert trace.answer == "Frank Herbert"


def test_white_space_at_the_end_of_a_turn_without_a_stop_text_is_the_policys_own():
    protocol = CAIRN.model_copy(update={"invalid": INVALID})
    trace = rollout(["hm\n", ANSWER_TURN], protocol)
    assert trace.segments[2].text == INVALID


class Slow(ScriptedPolicy):
    """Says the beginning of its turn, and then nothing for long."""

    def open(self, protocol: TextProtocol, question: str, **_: Any) -> ScriptedContext:
        return SlowContext(self, protocol.prompt_text(question))


class SlowContext(ScriptedContext):
    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        said = 0
        async for chunk in super().generate(sampling, stop=stop, max_tokens=max_tokens):
            yield chunk
            said += 1
            if said == 3:
                await asyncio.sleep(60)


def test_what_was_written_of_a_forced_answer_when_its_time_ended_is_the_answer():
    policy = Slow(lambda context: "Frank Herbert of Tacoma wrote it</answer>")
    trace = rollout([], CAIRN, Budgets(seconds=0, answer_seconds=0.3), policy=policy)
    assert ended(trace) == ("forced", "seconds")
    assert trace.answer == "Frank Herbert of Taco"
