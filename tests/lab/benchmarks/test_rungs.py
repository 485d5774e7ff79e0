"""`cairn bench rungs` asks a model in several ways, pairs them by question and writes what it found."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from lab.benchmarks.rungs import CLOSED, CUT, RAG, cut, rows_of
from lab.cli import rungs as commands_rungs
from tests.agent.sources.live.apiserver import ApiRequest, Reply, json_reply
from tests.model_servers import in_thread
from tests.train.evaluation.test_session import DOCUMENTS, QUESTIONS, write
from train.evaluation.result import QuestionResult


def result(at: int, said: str, *, right: bool = False, searches: int = 1, **more: Any) -> QuestionResult:
    metrics = {"em": float(right), "f1": float(right), "searches": float(searches), "seconds": 2.0}
    row = {"id": str(at), "question": "Who directed Aurora Falls?", "type": "", "hops": 1, "answers": ("Lina Orr",)}
    return QuestionResult.model_validate(row | {"prediction": said, "metrics": metrics, "stopped": "answered"} | more)


def test_each_way_is_summed_up_and_paired_with_plain_rag():
    rag = [result(at, "The director of Aurora Falls was Lina Orr.") for at in range(10)]
    closed = [result(at, "", searches=0) for at in range(10)]
    auto = [result(at, "Lina Orr", right=True, searches=2) for at in range(9)] + [
        result(9, "", searches=0, stopped="bad_format")
    ]
    rows = {row.way: row for row in rows_of({CLOSED: closed, RAG: rag, "auto": auto})}
    assert list(rows) == [CLOSED, RAG, CUT, "auto"]
    assert (rows[RAG].em, rows[CUT].em, rows["auto"].em) == (0.0, 1.0, 0.9)
    assert (rows[CLOSED].searched, rows[CLOSED].no_answer) == (0.0, 1.0)
    row = rows["auto"]
    assert (row.searched, row.kept_format, row.no_answer, row.searches, row.seconds) == (0.9, 0.9, 0.1, 1.8, 2.0)
    assert row.over_rag is not None
    assert row.over_rag[0] == 0.9
    assert 0.6 < row.over_rag[1] < 0.9 < row.over_rag[2] <= 1.0
    assert row.over_cut is not None
    assert row.over_cut[0] == -0.1
    assert rows[RAG].over_rag is None


def test_a_question_that_failed_counts_as_one_without_an_answer():
    failed = result(0, "", status="failed", metrics={})
    (row,) = rows_of({"auto": [failed, result(1, "Lina Orr", right=True)]})
    assert (row.n, row.failed, row.no_answer, row.searched, row.kept_format) == (2, 1, 0.5, 0.5, 0.5)
    assert (row.em, row.f1) == (0.5, 0.5)
    assert row.em_interval == rows_of({"auto": [result(0, ""), result(1, "Lina Orr", right=True)]})[0].em_interval


def test_ems_and_their_differences_agree_where_questions_failed():
    rag = [result(at, "Lina Orr", right=True) for at in range(10)]
    auto = [result(0, "Lina Orr", status="failed", metrics={}), *rag[1:]]
    rows = {row.way: row for row in rows_of({RAG: auto, "auto": rag})}
    over = rows["auto"].over_rag
    assert over is not None
    assert over[0] == pytest.approx(rows["auto"].em - rows[RAG].em) == pytest.approx(0.1)
    assert rows[CUT].em == 0.9, "a reply that came to nothing is not scored by being cut"


def test_a_reply_is_cut_by_the_rules_of_the_lowest_rung():
    assert cut(result(0, "The answer is Lina Orr [1].")).prediction == "Lina Orr"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write(tmp_path / "documents.jsonl", DOCUMENTS)


def reply(request: ApiRequest) -> Reply:
    """A model that knows one name, whatever the question is."""
    message = {"role": "assistant", "content": "Lina Orr"}
    return json_reply({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


ENDPOINT = ["--base-url", "http://127.0.0.1:1/v1", "--model", "m"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "plain RAG asks a model behind an endpoint"),
        (ENDPOINT, "no question could be scored; the last error: no server at"),
        ([*ENDPOINT, "--rung", "best"], "'best' is not one of 'auto'"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], says: str
):
    questions = write(tmp_path / "questions.jsonl", QUESTIONS)
    what = ["--questions", str(questions), "--corpus", str(corpus), "--out", str(tmp_path / "runs")]
    assert run(["bench", "rungs", *what, *options]) != 0
    assert says in " ".join(capsys.readouterr().err.split())


def test_the_command_asks_in_every_way_and_writes_one_page_of_all_runs(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    questions = write(tmp_path / "questions.jsonl", QUESTIONS)
    with in_thread({"/v1/chat/completions": reply}) as port:
        endpoint = ["--policy", "openai", "--base-url", f"http://127.0.0.1:{port}/v1", "--model", "m"]
        what = ["--questions", str(questions), "--corpus", str(corpus), "--out", "runs", "--name", "small list"]
        assert run(["bench", "rungs", *what, *endpoint, "--write", "--json"]) == 0
    kept = json.loads((tmp_path / "runs" / "small list" / commands_rungs.ROWS).read_bytes())
    assert [row["way"] for row in kept["rows"]] == [CLOSED, RAG, CUT, "auto"]
    assert kept["rungs"]["auto"] == "plain"
    row = kept["rows"][-1]
    assert (row["n"], row["searched"], row["no_answer"], row["kept_format"]) == (3, 1.0, 0.0, 1.0)
    page = (tmp_path / commands_rungs.REPORT).read_text(encoding="utf-8")
    assert page.count("## small list") == 1
    assert "| auto (plain) |" in page
    assert "| no answer | failed | seconds |" in page
