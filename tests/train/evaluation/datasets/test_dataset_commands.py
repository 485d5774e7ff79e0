import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from agent.errors import CorpusError
from train.evaluation.datasets.commands import register

FILES = Path(__file__).parents[3] / "fixtures" / "datasets"


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, ["dataset", *map(str, arguments)])


def test_show_prints_what_a_file_is():
    result = run("show", FILES / "musique.jsonl", "--json")
    printed = json.loads(result.stdout)
    assert (printed["dataset"], printed["n"], printed["unanswerable"], printed["with_gold_passages"]) == (
        "musique",
        2,
        1,
        1,
    )
    assert printed["first"]["answers"] == ["Dell", "Dell, Orlen"]
    assert "MuSiQue, 2 questions, 1 without an answer" in run("show", FILES / "musique.jsonl").stdout


def test_corpus_and_questions_write_what_they_say(tmp_path: Path):
    for command, key, size in (("corpus", "paragraphs", 3), ("questions", "questions", 2)):
        out = tmp_path / f"{command}.jsonl"
        assert json.loads(run(command, FILES / "hotpotqa.json", "--out", out, "--json").stdout)[key] == size
        assert len(out.read_text(encoding="utf-8").splitlines()) == size


def test_list_names_every_form():
    names = [form["name"] for form in json.loads(run("list", "--json").stdout)["forms"]]
    assert {
        "nq",
        "triviaqa",
        "popqa",
        "hotpotqa",
        "2wikimultihopqa",
        "musique",
        "bamboogle",
        "frames",
        "morehopqa",
    } <= set(names)
    assert "MoreHopQA" in run("list").stdout


def test_a_wrong_form_is_refused_where_it_is_named():
    result = run("show", FILES / "popqa.tsv", "--dataset", "nq")
    assert isinstance(result.exception, CorpusError)
    assert "it looks like PopQA" in str(result.exception)


@pytest.mark.parametrize("command", ["list", "show", "corpus", "questions"])
def test_every_command_teaches_with_an_example(command: str):
    assert "cairn dataset" in run(command, "--help").stdout
