"""Under every protocol and profile there is, every trace agrees with itself, whatever the policy writes."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.loop.agent import Agent
from agent.loop.budgets import Budgets
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import TextProtocol, protocol_named, protocol_names
from agent.protocols.registry import profile_names
from agent.sources.base import Source
from agent.trace import Trace
from tests.agent.test_guards import BUDGETS
from tests.conftest import Broken, Echo, answer
from tests.invariants import violations

NAMES = [*protocol_names(), *profile_names()]
CALL = '{"name": "search", "arguments": {"query": ["x", "y"]}}'
GRAPH = '{"query": "q", "entity": ["x"], "relation": ["y"]}'
SEARCHES = [
    "A: x (web)\nB: y",
    "A: x\nB: of #A",
    "x",
    "x, y",
    "x ## y",
    CALL,
    CALL.replace("search", "web_search"),
    GRAPH,
    "",
]
WORDS = ["hm ", "\n", "x", r"\boxed{x}", "}", "{", *SEARCHES]


def protocol(name: str) -> TextProtocol:
    """One whose foreign texts are given."""
    found = protocol_named(name)
    return found.model_copy(update=dict.fromkeys(found.missing, "Ask: {question}"))


PROTOCOLS = {name: protocol(name) for name in NAMES}


def blocks(spoken: TextProtocol) -> list[str]:
    """Whole searches and answers as the protocol spells them."""
    searches = [f"{spoken.opening('search')}{text}{spoken.closing('search')}" for text in SEARCHES]
    answers = [f"{spoken.opening('answer')}{text}{spoken.closing('answer')}" for text in ("x", r"it is \boxed{x}", "")]
    return searches + answers


def turns(spoken: TextProtocol) -> st.SearchStrategy[list[str]]:
    marks = [text for mark in spoken.policy_marks.values() for text in (mark.open, mark.close)]
    pieces = st.sampled_from([*blocks(spoken), *marks, *WORDS])
    return st.lists(st.lists(pieces, max_size=5).map("".join) | st.sampled_from(blocks(spoken)), min_size=1, max_size=7)


def rollout(said: Sequence[str], spoken: TextProtocol, budgets: Budgets, *, broken: str = "") -> Trace:
    sources: dict[str, Source] = {name: Echo(name) for name in ("web", "news", "kg", "documents", "page", "all")}
    if broken:
        sources[broken] = Broken()
    trace = answer([], agent=Agent(ScriptedPolicy(list(said)), spoken, sources, budgets))
    assert violations(trace, spoken, templated=spoken.deliver == "user") == []
    return trace


@pytest.mark.parametrize("name", NAMES)
def test_every_trace_of_every_protocol_agrees_with_itself(name: str):
    spoken = PROTOCOLS[name]

    @settings(max_examples=30)
    @given(turns(spoken), st.just(Budgets()) | BUDGETS, st.sampled_from(["", "", "all", "web"]))
    def holds(said: list[str], budgets: Budgets, broken: str) -> None:
        rollout(said, spoken, budgets, broken=broken)

    holds()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cairn", "<fill><search>A: x (web)\nB: y</search>"),
        ("r1-searcher", "A: x (web)\nB: y<answer>it is \\boxed{x}</answer>"),
    ],
)
def test_a_turn_that_fills_the_context_is_recorded_as_far_as_it_came(name: str, said: str):
    rollout([said, ""], PROTOCOLS[name], Budgets(context_tokens=60, answer_tokens=1))


def test_a_reminder_that_the_context_has_no_room_for_is_left_out():
    spoken, again = PROTOCOLS["cairn"], f"<search>{CALL}</search>"
    said = [rollout([again, again], spoken, Budgets(context_tokens=size, answer_tokens=1)) for size in (420, 4096)]
    shown = [[s.text for s in trace.segments if s.by == "environment"] for trace in said]
    assert [len(set(texts)) for texts in shown] == [2, 1]


@pytest.mark.parametrize("name", NAMES)
def test_every_protocol_has_a_search_that_finds_and_an_answer(name: str):
    spoken = PROTOCOLS[name]
    answered = blocks(spoken)[len(SEARCHES)]
    traces = [rollout([block, answered], spoken, Budgets()) for block in blocks(spoken)[: len(SEARCHES)]]
    assert any(trace.passages and trace.answer == "x" for trace in traces)
