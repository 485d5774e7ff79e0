import json
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run

DOCUMENTS = [
    {"id": "d1", "title": "Aurora Falls", "text": "Lina Orr directed Aurora Falls."},
    {"id": "d2", "title": "Lina Orr", "text": "Lina Orr was born in Trieste."},
    {"id": "d3", "title": "Trieste", "text": "Trieste is a city [on the sea]."},
]
QUESTIONS = [
    {"id": "q1", "question": "Who directed Aurora Falls?", "answers": ["Lina Orr"], "supporting": ["d1"]},
    {"id": "q2", "question": "Where was Lina Orr born?", "answers": ["Trieste"], "supporting": ["d2", "d4"]},
    {"id": "q3", "question": "What is a city?", "answers": ["Trieste"]},
]


def write(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    documents = write(tmp_path / "d.jsonl", [dict(d) for d in DOCUMENTS])
    assert run(["index", "build", documents, "--out", str(tmp_path / "index")]) == 0
    assert "3 passages" in capsys.readouterr().out
    return str(tmp_path / "index")


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    captured = capsys.readouterr()
    assert not captured.err
    return json.loads(captured.out)


def test_build_tells_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    documents = write(tmp_path / "d.jsonl", [dict(d) for d in DOCUMENTS])
    assert run(["index", "build", documents, "--out", str(tmp_path / "i"), "--json"]) == 0
    card = told(capsys)
    assert card["documents"] == 3
    assert card["out"] == str(tmp_path / "i")


def test_search_prints_the_best_passages(index: str, capsys: pytest.CaptureFixture[str]):
    assert run(["index", "search", index, "which city", "--topk", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1. Trieste  d3 · ")
    assert "Trieste is a city [on the sea]." in lines[1]


def test_search_as_json_prints_one_object(index: str, capsys: pytest.CaptureFixture[str]):
    assert run(["index", "search", index, "Lina Orr", "--json"]) == 0
    assert [p["id"] for p in told(capsys)["passages"]] == ["d2", "d1"]


def test_nothing_found_is_said(index: str, capsys: pytest.CaptureFixture[str]):
    assert run(["index", "search", index, "zebra"]) == 0
    assert "Nothing was found." in capsys.readouterr().out


def test_batch_measures_over_the_questions_with_gold(index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    questions = write(tmp_path / "q.jsonl", [dict(q) for q in QUESTIONS])
    assert run(["index", "batch", index, "--questions", questions, "--topk", "1", "--json"]) == 0
    figures = told(capsys)
    assert figures.pop("queries_per_s")
    assert figures == {
        "n": 2,
        "without_gold": 1,
        "recall_1": 0.75,
        "all_gold_1": 0.5,
        "recall_10": 0.75,
        "all_gold_5": 0.5,
        "all_gold_10": 0.5,
        "mrr": 1.0,
    }


def test_batch_draws_a_table(index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    questions = write(tmp_path / "q.jsonl", [dict(q) for q in QUESTIONS])
    assert run(["index", "batch", index, "--questions", questions]) == 0
    assert "all_gold_10" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "why"),
    [
        (["build", "{folder}/gone", "--out", "{folder}/i"], 1, "there is no file or folder"),
        (["build", "{folder}/empty.jsonl", "--out", "{folder}/i"], 1, "there are no documents"),
        (["search", "{folder}", "x"], 1, "is no index: it has no index.json"),
        (["search", "{index}", " "], 2, "the query is empty"),
        (["batch", "{index}", "--questions", "{folder}/gone"], 1, "cannot be read"),
        (["batch", "{index}", "--questions", "{folder}/no_gold.jsonl"], 1, "names its gold passages"),
    ],
)
def test_bad_input_is_a_sentence_and_a_status(
    index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, why: str
):
    (tmp_path / "empty.jsonl").touch()
    write(tmp_path / "no_gold.jsonl", [dict(QUESTIONS[2])])
    filled = [argument.format(folder=tmp_path, index=index) for argument in arguments]
    assert run(["index", *filled]) == status
    captured = capsys.readouterr()
    assert why in " ".join(captured.err.replace("│", " ").split())
    assert not captured.out
