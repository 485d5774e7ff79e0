"""Blocks as rewards see them: who wrote them, and whether they are whole."""

import pytest

from agent.loop.budgets import Budgets
from agent.protocols import protocol_named
from agent.trace import Author, Segment, Trace
from tests.train.rewards.rollouts import MERGED, PLAN, QUERY, THREE, rollout, said
from train.rewards.support.blocks import blocks_of, has_shape, shape


def shape_of(trace: Trace, **options: str) -> str:
    return shape(blocks_of(trace, protocol_named(trace.protocol)), **options).strip()


def said_by(protocol: str, *pieces: tuple[Author, str]) -> Trace:
    segments = [Segment(by="prompt", text="Question: ?"), *(Segment(by=by, text=text) for by, text in pieces)]
    return Trace(id="t", question="?", protocol=protocol, policy="p", segments=segments)


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        (rollout("multisearch", THREE, MERGED + said("x")), "thought search information merge answer"),
        (rollout("evidence", QUERY, said("x")), "text search information answer"),
        (rollout("multisearch", "<merge>never closed"), "merge?"),
        (rollout("multisearch", "<think>a</think> stray <answer>x</answer>"), "thought text answer"),
        (rollout("multisearch", "<think></think>" + said("x")), "thought answer"),
        (rollout("dag", "<think>a</think><result>b</result>" + said("x")), "thought text answer"),
    ],
)
def test_the_shape_of_rollouts(trace: Trace, expected: str):
    assert shape_of(trace) == expected


def test_what_the_loop_opened_or_closed_is_not_whole():
    forced = rollout("multisearch", THREE, THREE, "x</answer>", budgets=Budgets(rounds=1))
    assert shape_of(forced) == "thought search information thought search answer?"
    ran_out = rollout("multisearch", "<answer>and so on and on", budgets=Budgets(policy_tokens=20, answer_tokens=8))
    assert shape_of(ran_out) == "answer?"


def test_text_behind_the_end_of_a_turn_was_never_read_but_tags_there_count():
    assert shape_of(said_by("multisearch", ("policy", "<answer>x</answer>.\n"))) == "answer"
    twice = said_by("multisearch", ("policy", "<answer>x</answer> or <answer>y</answer>"))
    assert shape_of(twice) == "answer answer"


def test_how_the_text_was_cut_into_segments_changes_nothing():
    text = "<think>a</think><merge>b</merge><answer>c</answer>"
    whole = blocks_of(said_by("multisearch", ("policy", text)), protocol_named("multisearch"))
    for at in range(1, len(text)):
        cut = said_by("multisearch", ("policy", text[:at]), ("policy", text[at:]))
        assert blocks_of(cut, protocol_named("multisearch")) == whole


def test_branches_are_not_part_of_the_rollouts_own_blocks():
    trace = rollout("cairn", PLAN, MERGED + said("x"))
    more = Segment(by="policy", text="<answer>y</answer>", branch="1.A")
    assert shape_of(trace.model_copy(update={"segments": [*trace.segments, more]})) == shape_of(trace)


def test_protocols_call_untagged_text_a_thought():
    trace = rollout("evidence", QUERY, said("x"))
    blocks = blocks_of(trace, protocol_named("evidence"))
    assert shape_of(trace, untagged="thought") == "thought search information answer"
    assert has_shape(blocks, "(thought search information )+answer ", untagged="thought")
    assert not has_shape(blocks, "(thought search information )+answer ")
