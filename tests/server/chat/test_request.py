"""From messages to a question and earlier turns."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.loop.budgets import Budgets
from agent.protocols import protocol_named
from server.chat.request import ChatQuestion, ChatRequest, read_request, without_reasoning
from server.chat.service import budgets_for
from server.http.errors import ApiError


def read(*messages: tuple[str, Any]) -> ChatQuestion:
    request = ChatRequest.model_validate({"messages": [{"role": role, "content": text} for role, text in messages]})
    return read_request(request, most_chars=1000)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("<think>a\nb</think>\nTrieste", "Trieste"),
        ("<thinking>a</thinking>Trieste <think>b</think>.", "Trieste ."),
        ("never opened</think>Trieste", "Trieste"),
        ("Trieste<think>never closed", "Trieste"),
        ('<details type="reasoning" done="true">a</details>Trieste', "Trieste"),
        ("a < b and b > c", "a < b and b > c"),
        ('<details type="tool_calls" done="true">a</details>\nTrieste', "Trieste"),
        ('Trieste [1] [2]\n\n- [2] Lina Orr (kg)\n\n[1]: <https://a.org> "A \\"b\\""', "Trieste"),
        ("Trieste\n\nOrr was born there. [1]\n\n[1]: <https://a.org>", "Trieste\n\nOrr was born there."),
        ("Trieste [1]\n\n- [1] Lina Orr (kg)", "Trieste"),
        ("Two things:\n\n- [1] is a mark\n- b", "Two things:\n\n- [1] is a mark\n- b"),
    ],
)
def test_reasoning_is_stripped_from_an_earlier_answer(said: str, meant: str) -> None:
    assert without_reasoning(said) == meant


@pytest.mark.parametrize(
    "hostile", ["a" + "[1]: <h>\n" * 20_000 + "x", "a" + " [1]" * 20_000 + "x", "a" + "\n" * 20_000 + "x",
                "a\n\n" + "- [1] t (kg)\n" * 20_000 + "x", "a" + " " * 50_000 + "x", "<think>" * 20_000],
    ids=["definitions", "marks", "lines", "sources", "spaces", "tags"],
)  # fmt: skip
def test_no_earlier_answer_takes_long_to_read(hostile: str) -> None:
    began = time.perf_counter()
    without_reasoning(hostile)
    assert time.perf_counter() - began < 3


def test_a_part_of_text_without_its_text_is_named_in_the_error() -> None:
    with pytest.raises(ApiError) as refused:
        read(("user", [{"type": "text"}]))
    assert "a part of type 'text', but it has no 'text'" in refused.value.detail


def test_turns_are_paired_and_what_has_no_answer_is_left_out() -> None:
    made = read(
        ("system", "s"), ("assistant", "Hello!"), ("user", "q1"), ("assistant", "a1"), ("tool", "t"), ("user", "q2"),
        ("assistant", None), ("user", "q3"),
    )  # fmt: skip
    assert made == ChatQuestion(question="q3", history=(("q1", "a1"),), system="s")


def test_neighbours_of_one_role_are_one_turn() -> None:
    assert read(("user", "context"), ("user", [{"type": "text", "text": "question"}])).question == "context\n\nquestion"


def test_old_turns_that_do_not_fit_are_forgotten_first() -> None:
    made = read(("user", "q1"), ("assistant", "a" * 900), ("user", "q2"), ("assistant", "b" * 900), ("user", "q"))
    assert [question for question, _ in made.history] == ["q2"]


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant", "tool"]), st.text(max_size=5)), max_size=8))
def test_any_messages_are_a_question_or_a_refusal(messages: list[tuple[str, str]]) -> None:
    try:
        made = read(*messages)
    except ApiError as error:
        assert error.status_code == 400  # noqa: PT017 - both outcomes are right
    else:
        assert made.question.strip()
        assert all(question and answer for question, answer in made.history)


@pytest.mark.parametrize(
    ("effort", "rounds", "tokens"),
    [("none", 2, 2048), ("low", 2, 2048), ("medium", 4, 4096), (None, 4, 4096), ("high", 8, 8192), ("max", 8, 8192)],
)
def test_effort_scales_the_budgets(effort: str | None, rounds: int, tokens: int) -> None:
    request = ChatRequest.model_validate({"messages": [], "reasoning_effort": effort})
    made = budgets_for(request, Budgets(), protocol_named("cairn"))
    assert (made.rounds, made.policy_tokens) == (rounds, tokens)


def test_a_request_can_lower_the_tokens_and_never_raise_them() -> None:
    protocol = protocol_named("cairn")
    little = ChatRequest.model_validate({"messages": [], "max_completion_tokens": 10})
    made = budgets_for(little, Budgets(), protocol)
    assert (made.policy_tokens, made.answer_tokens) == (10, 5)
    much = ChatRequest.model_validate({"messages": [], "max_tokens": 10**9})
    assert budgets_for(much, Budgets(), protocol).policy_tokens == Budgets().policy_tokens


def test_a_requests_own_budgets_lower_what_the_server_allows_and_never_raise_it() -> None:
    wanted = {"rounds": 1, "searches": 2, "passages": 3, "tokens": 100, "seconds": 4, "credits": 5}
    request = ChatRequest.model_validate({"messages": [], "budgets": wanted})
    made = budgets_for(request, Budgets(), protocol_named("cairn"))
    assert (made.rounds, made.searches, made.passages, made.policy_tokens, made.credits) == (1, 2, 3, 100, 5)
    assert (made.seconds, made.answer_seconds, made.answer_tokens) == (4, 4, 50)
    much = ChatRequest.model_validate({"messages": [], "budgets": dict.fromkeys(wanted, 10**6)})
    assert budgets_for(much, Budgets(rounds=4), protocol_named("cairn")) == Budgets(rounds=4)
    both = ChatRequest.model_validate({"messages": [], "budgets": {"searches": 30}, "reasoning_effort": "low"})
    assert budgets_for(both, Budgets(), protocol_named("cairn")).searches == 16


def test_no_rounds_stay_no_rounds() -> None:
    request = ChatRequest.model_validate({"messages": [], "reasoning_effort": "low"})
    assert budgets_for(request, Budgets(rounds=0), protocol_named("cairn")).rounds == 0
