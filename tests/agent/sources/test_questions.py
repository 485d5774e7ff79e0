import json
from pathlib import Path

import pytest

from agent.errors import CorpusError
from agent.sources.questions import GoldQuestion, gold_found, read_questions

GOOD = {"id": "q1", "question": "Who?", "answers": ["Lina", "L. Orr"]}


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def test_questions_are_read_with_what_is_known_of_them(tmp_path: Path):
    whole = {**GOOD, "id": 2, "supporting": ["p1"], "hops": 2, "type": "chain", "level": "hard"}
    assert read_questions(write(tmp_path / "q.jsonl", GOOD, "", whole)) == [
        GoldQuestion(id="q1", question="Who?", answers=("Lina", "L. Orr")),
        GoldQuestion(id="2", question="Who?", answers=("Lina", "L. Orr"), supporting=("p1",), hops=2, type="chain"),
    ]


def test_a_question_without_an_answer_says_so_and_a_conversation_is_kept(tmp_path: Path):
    line = {"id": "q2", "question": "And he?", "answers": [], "unanswerable": True, "history": [["Who?", "Lina"]]}
    (question,) = read_questions(write(tmp_path / "q.jsonl", line))
    assert (question.unanswerable, question.answers, question.history) == (True, (), (("Who?", "Lina"),))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "not valid JSON"),
        ({"id": "a", "answers": ["x"]}, "the field 'question' is missing"),
        ({"id": "a", "question": " ", "answers": ["x"]}, "the field 'question' cannot be used: is empty"),
        ({"id": "a", "question": "Who?", "answers": []}, "needs at least one answer"),
        ({"id": "a", "question": "Who?", "answers": ["…"]}, "needs at least one answer"),
        ({"id": "a", "question": "Who?", "answers": "x"}, "the field 'answers' cannot be used"),
        (GOOD, "the id 'q1' occurs twice"),
    ],
)
def test_a_bad_line_is_named_with_its_file_and_number(tmp_path: Path, line: object, why: str):
    path = write(tmp_path / "q.jsonl", GOOD, line)
    with pytest.raises(CorpusError) as caught:
        read_questions(path)
    assert f"{path}, line 2: " in str(caught.value)
    assert why in str(caught.value)


def test_no_file_and_no_questions_are_said(tmp_path: Path):
    with pytest.raises(CorpusError, match="cannot be read"):
        read_questions(tmp_path / "gone.jsonl")
    with pytest.raises(CorpusError, match="there are no questions"):
        read_questions(write(tmp_path / "q.jsonl", "", ""))


def test_a_part_of_a_gold_passage_counts_as_the_passage():
    assert gold_found(["a", "b", "c#1"], ["a#0-900", "x", "c#1"]) == {"a", "c#1"}
    assert gold_found(["a"], ["ab#0-9", "b#a"]) == set()
