import json
from pathlib import Path

import pytest

from agent.errors import SetupError
from tests.train.evaluation.runs import failed, passage, result, stored, trace
from train.evaluation.gold import fold
from train.evaluation.pack import LEVELS, Level, pack, read_traces


def raw_text(packed: dict[str, object]) -> str:
    return json.dumps(packed, ensure_ascii=False)


def test_a_trace_keeps_its_steps_without_ids_and_log_probabilities():
    packed = pack([result(1)], [trace(1, [passage(1, "It is number one.")])])
    steps = packed["questions"][0]["trace"]["steps"]
    assert [step["kind"] for step in steps] == [
        "thought", "planned", "searched", "gathered", "merged", "evidenced", "answered", "stopped",
    ]  # fmt: skip
    assert steps[2] | {"passages": [0], "took": 0.25, "backend": "tavily"} == steps[2]
    assert "logprobs" not in raw_text(packed)
    assert '"ids"' not in raw_text(packed)
    assert packed["note"] == ""


def test_a_passage_stands_once_however_often_it_was_found():
    same = "The same long passage about a number. " * 5
    packed = pack([result(n) for n in range(20)], [trace(n, [passage(1, same)]) for n in range(20)])
    assert len(packed["passages"]) == 1
    assert raw_text(packed).count(same) == 1


def test_the_rules_of_the_prompt_stand_once():
    packed = pack([result(n) for n in range(5)], [trace(n, []) for n in range(5)])
    assert raw_text(packed).count("Rules. Rules. Rules.") == raw_text({"one": "Rules. " * 40}).count(
        "Rules. Rules. Rules."
    )


def test_the_raw_context_reads_as_it_was():
    shown = trace(1, [passage(1, "It (is) [number] one."), passage(2, "Number."), passage(3, "")])
    packed = pack([result(1)], [shown])
    read = [
        "".join(part if isinstance(part, str) else packed["texts"][part] for part in segment["parts"])
        for segment in packed["questions"][0]["trace"]["raw"]
    ]
    assert read == [segment.text for segment in shown.segments]
    assert [segment["by"] for segment in packed["questions"][0]["trace"]["raw"]] == [s.by for s in shown.segments]


def test_gold_is_marked_also_in_parts_and_what_was_never_shown_is_named():
    passages = [passage(1, "One."), passage(2, "Two.").model_copy(update={"id": "long#2"})]
    packed = pack([result(1, supporting=("long", "gone"))], [trace(1, passages)])
    shown = packed["questions"][0]["trace"]
    assert ([packed["passages"][place]["id"] for place in shown["gold"]], shown["missing"]) == (["long#2"], ["gone"])


def test_titles_are_gold_where_the_gold_names_are_titles():
    packed = pack([result(1, supporting=(fold("A Title"),))], [trace(1, [passage(1, "One.", title="A Title")])])
    assert packed["questions"][0]["trace"]["gold"] == [0]


def test_what_is_cut_is_said():
    packed = pack([result(1)], [trace(1, [passage(1, "x" * 500)])], Level(passage=100, step=5_000))
    assert "x" * 101 not in raw_text(packed)
    assert "[cut: 400 more characters]" in raw_text(packed)
    assert "passages are cut to 100 characters" in packed["note"]


def test_the_last_levels_leave_traces_out_those_of_right_answers_first():
    results, traces = [result(1), result(2, "no")], [trace(1, []), trace(2, [], answer="no")]
    kept = pack(results, traces, LEVELS[-2])
    assert ["trace" in question for question in kept["questions"]] == [False, True]
    assert not any("trace" in question for question in pack(results, traces, LEVELS[-1])["questions"])
    assert "traces.jsonl" in kept["note"]


def test_a_question_that_failed_says_why_and_needs_no_trace():
    question = pack([failed(1, "timeout")], [])["questions"][0]
    assert (question["verdict"], question["failure"], question["detail"]) == ("failed", "timeout", "no route")


def test_traces_are_read_by_id_and_a_cut_off_line_is_none(tmp_path: Path):
    folder = stored(tmp_path, [], [trace(n, []) for n in range(3)])
    path = folder / "traces.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write('{"version":1,"id":"t9","quest')
    assert [t.id for t in read_traces(path, ["t2", "t0", "t9"])] == ["t0", "t2"]
    assert list(read_traces(tmp_path / "none.jsonl", ["t1"])) == []
    path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(SetupError, match="line 1 is not a trace"):
        list(read_traces(path, ["t1"]))
