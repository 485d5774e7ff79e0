"""What a call costs, and that the fit finds what calls were made of."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import SetupError
from lab.benchmarks.load.model.calls import Call, read_calls
from lab.benchmarks.load.model.cost import Cost, Member, fit_alone, fit_together

COST = Cost(call=0.002, prompt=1e-5, step=4e-4, attend=1e-6, member=0.3, both=1.5)
members_of = st.lists(st.builds(Member, st.integers(1, 400), st.integers(1, 150)), min_size=1, max_size=8)


def call_of(members: list[Member], *, began: float = 0.0, slower: float = 1.0) -> Call:
    seconds = COST.seconds(members) * slower
    at = round(began * 1e9)
    prompts, tokens = tuple(m.prompt for m in members), tuple(m.tokens for m in members)
    return Call(at, at + round(seconds * 1e9), prompts, tokens)


def singles(count: int) -> list[list[Member]]:
    return [[Member(20 + 37 * n % 900, 10 + 23 * n % 130)] for n in range(count)]


@settings(max_examples=40)
@given(members_of)
def test_every_member_is_done_once_and_the_one_with_the_most_steps_last(members: list[Member]):
    segments = COST.segments(members)
    assert sorted(place for segment in segments for place in segment.done) == list(range(len(members)))
    assert all(segment.seconds > 0 for segment in segments)
    steps = [member.prompt + member.tokens for member in members]
    assert steps[segments[-1].done[0]] == max(steps)


@settings(max_examples=40)
@given(members_of)
def test_a_call_of_several_costs_more_than_its_dearest_member_and_less_than_all_of_them_alone(members: list[Member]):
    least = min(member.prompt for member in members)
    alike = [Member(least, member.tokens) for member in members]
    alone = [COST.seconds([member]) for member in alike]
    assert max(alone) <= COST.seconds(alike) + 1e-12
    assert COST.seconds(alike) <= sum(alone) + 1e-12


def test_the_fit_of_one_stream_finds_what_its_calls_cost():
    found = fit_alone(call_of(members) for members in singles(100))
    assert (found.call, found.prompt) == (pytest.approx(COST.call, rel=1e-3), pytest.approx(COST.prompt, rel=1e-2))
    assert (found.step, found.attend) == (pytest.approx(COST.step, rel=1e-3), pytest.approx(COST.attend, rel=1e-2))


def test_a_call_whose_core_was_taken_does_not_move_the_fit():
    calls = [call_of(members, slower=9.0 if n % 40 == 7 else 1.0) for n, members in enumerate(singles(200))]
    assert fit_alone(calls).seconds([Member(300, 60)]) == pytest.approx(COST.seconds([Member(300, 60)]), rel=0.01)


def test_the_fit_of_a_load_finds_what_a_member_more_costs_and_how_two_calls_slow_each_other():
    groups = [[Member(40 + n % 5, 30 + 11 * n % 60)] * (1 + n % 4) for n in range(120)]
    calls: list[Call] = []
    for lane in (groups[::2], groups[1::2]):
        at = 0.0
        for members in lane:
            calls.append(call_of(members, began=at, slower=COST.both))
            at = calls[-1].ended / 1e9
    found = fit_together(COST, calls)
    assert found.both == pytest.approx(COST.both, rel=0.02)
    assert found.member == pytest.approx(COST.member, rel=0.05)


def test_calls_that_were_alone_say_nothing_of_two_at_the_same_time():
    calls = [call_of(members, began=float(n)) for n, members in enumerate(singles(60))]
    assert all(first.ended < second.began for first, second in pairwise(calls))
    assert fit_together(COST, calls) is COST


def test_too_few_calls_are_refused_with_what_to_do():
    with pytest.raises(SetupError, match="ask alone for longer"):
        fit_alone([call_of([Member(10, 10)])])


def test_a_log_whose_last_line_was_cut_is_read_without_it(tmp_path: Path):
    lines = [json.dumps({"began": at, "ended": at + 5, "prompts": [3], "tokens": [2]}) for at in (20, 10)]
    (tmp_path / "calls.jsonl").write_text("\n".join([*lines, lines[0][:9]]), encoding="utf-8")
    assert [call.began for call in read_calls(tmp_path / "calls.jsonl")] == [10, 20]
