from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.errors import SetupError
from agent.evidence import Passage
from agent.plan import Filter, Node, Plan
from agent.trace import (
    Answered,
    Branch,
    Claim,
    Evidenced,
    Filled,
    Gathered,
    Merged,
    Planned,
    PlanRejected,
    Restated,
    Searched,
    SearchFailed,
    Segment,
    Skipped,
    Stopped,
    Thought,
    Trace,
)
from agent.trace.io import append_trace, read_traces, timeless, write_traces
from tests.conftest import ANSWER_TURN, PLAN_TURN, answer

PASSAGE = Passage(id="1", source="web", title="T", text="é\u2028\n", url="https://example.org", number=1, node="A")
NODE = Node(id="A", query="q", source="web", parents=("B",), filters=(Filter(name="after", value="2026"),))
STEPS = [
    Thought(text="t", segments=(1,), seconds=0.5),
    Planned(round=1, plan=Plan(nodes=(NODE,), dropped=("C",))),
    PlanRejected(round=1, text="x", why="y"),
    Restated(text="r"),
    Filled(round=1, node="A", query="q", segments=(1, 2)),
    Searched(round=1, node="A", source="web", query="q", passages=(PASSAGE,), took=0.1),
    Searched(round=1, node="A", source="all", query="q", passages=(PASSAGE,), lost=("news",)),
    SearchFailed(round=1, node="A", source="web", query="q", why="w", error="auth"),
    Skipped(round=1, node="A", why="w"),
    Gathered(round=1, passages=(PASSAGE,), dropped=2),
    Merged(text="m"),
    Evidenced(text="- c [1]", claims=(Claim(text="c", cites=(1,)),)),
    Answered(text="a", by="loop"),
    Stopped(reason="forced", budget="user"),
]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
segments = st.builds(
    Segment,
    by=st.sampled_from(["prompt", "policy", "environment", "loop"]),
    text=texts,
    ids=st.none() | st.tuples(st.integers(0)),
    logprobs=st.none() | st.tuples(st.floats(max_value=0, allow_infinity=False)),
)
traces = st.builds(
    Trace,
    id=texts,
    question=texts,
    protocol=texts,
    policy=texts,
    history=st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
    segments=st.lists(segments, max_size=3),
    steps=st.lists(st.sampled_from(STEPS), max_size=4),
    branches=st.dictionaries(texts, st.builds(Branch, parent=texts, segment=st.integers(0), node=texts), max_size=1),
    passages=st.lists(st.just(PASSAGE), max_size=2),
)


@given(traces)
def test_a_trace_survives_json(trace: Trace):
    assert Trace.model_validate_json(trace.model_dump_json()) == trace


def test_a_step_names_lost_sources_only_where_there_are_some():
    whole, lossy = (step for step in STEPS if isinstance(step, Searched))
    assert "lost" not in whole.model_dump_json()
    assert Trace(id="t", question="q", protocol="p", policy="p", steps=[whole, lossy, lossy]).lost == ("news",)


def test_traces_are_written_and_read_as_lines(tmp_path: Path):
    path = tmp_path / "new" / "traces.jsonl"
    wanted = [answer([PLAN_TURN, ANSWER_TURN]), answer(["hm"])]
    wanted[0].passages.append(PASSAGE)
    write_traces(path, wanted)
    append_trace(path, wanted[0])
    assert list(read_traces(path)) == [*wanted, wanted[0]]
    assert path.read_bytes().count(b"\n") == 3


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{}\n", "line 1 is not a trace of this version: id: it is missing"),
        (b"\n\nnot json\n", "line 3 is not a trace of this version"),
        (b'{"version": 2}', "version: Input should be 1"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_line_that_is_no_trace_is_named(tmp_path: Path, content: bytes, why: str):
    path = tmp_path / "traces.jsonl"
    path.write_bytes(content)
    with pytest.raises(SetupError, match=why):
        list(read_traces(path))


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path):
    with pytest.raises(SetupError, match=r"none\.jsonl cannot be read"):
        list(read_traces(tmp_path / "none.jsonl"))


def test_without_id_and_times_two_rollouts_of_a_script_are_equal():
    first, second = answer([PLAN_TURN, ANSWER_TURN]), answer([PLAN_TURN, ANSWER_TURN])
    assert first != second
    assert timeless(first) == timeless(second)
    assert timeless(first) != timeless(answer([PLAN_TURN, ANSWER_TURN.replace("Frank Herbert</answer>", "x</answer>")]))


def test_answer_and_end_are_those_of_the_last_steps():
    trace = Trace(id="1", question="q", protocol="cairn", policy="p")
    assert (trace.answer, trace.stopped) == (None, None)
    trace.steps.extend([Answered(text="a"), Answered(text="b"), Stopped(reason="answered")])
    assert (trace.answer, trace.stopped) == ("b", Stopped(reason="answered"))


def test_an_unknown_step_or_field_is_refused():
    with pytest.raises(ValidationError):
        Trace.model_validate(
            {"id": "1", "question": "q", "protocol": "p", "policy": "p", "steps": [{"kind": "danced"}]}
        )
    with pytest.raises(ValidationError):
        Thought.model_validate({"text": "t", "mood": "good"})
