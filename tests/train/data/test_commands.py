"""`cairn data` as one calls it."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from tests.train.data.made import write_docs
from tests.train.data.scripted import topics, writer_server
from train.data.commands import register

pytest.importorskip("sklearn")
pytest.importorskip("datasketch")


def cairn(*words: str) -> Result:
    """The command alone, so that also a version that was installed before it is tested."""
    app = typer.Typer()
    app.command("other")(lambda: None)
    register(app)
    return CliRunner().invoke(app, ["data", *words])


def docs_options(folder: Path) -> list[str]:
    files = write_docs(topics(), folder)
    return [word for source, path in files.named for word in ("--docs", f"{source}={path}")]


def test_a_build_reports_every_step_and_goes_on_where_it_is_called_again(tmp_path: Path):
    out = str(tmp_path / "out")
    with writer_server(topics()) as (writer, server):
        words = [*docs_options(tmp_path / "docs"), "--base-url", server.url, "--model", "writer", "--out", out]
        words += ["--embedder", "words", "--thin-words", "5", "--group", "6", "--reach", "0.01", "--limit", "3"]
        words += ["--kinds", "factual,choice"]
        first = cairn("build", *words)
        before = writer.requests.total()
        again = cairn("build", *words, "--json")
    assert first.exit_code == 0, first.output
    assert "by heart" in first.output
    printed = json.loads(again.stdout)
    assert writer.requests.total() == before > 0
    assert printed["steps"][0]["name"] == "reading"
    assert next(s for s in printed["steps"] if s["name"] == "writing")["taken"] == 6
    shown = cairn("show", out)
    assert shown.exit_code == 0
    assert "by heart" in shown.output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--out", "o"], "--docs"),
        (["--out", "o", "--docs", "a", "--world", "b"], "--docs"),
        (["--out", "o", "--world", "test-v2", "--model", "m"], "--base-url"),
    ],
)
def test_what_does_not_go_together_is_a_wrong_call(words: list[str], why: str):
    result = cairn("build", *words)
    assert result.exit_code == 2
    assert why in result.output


def test_documents_without_a_writer_and_wrong_kinds_are_refused(tmp_path: Path):
    options = docs_options(tmp_path)
    without_model = cairn("build", *options, "--out", str(tmp_path / "out"))
    assert "name a model that writes" in str(without_model.exception)
    wrong = cairn(
        "build", *options, "--out", "o", "--kinds", "riddle", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"
    )
    assert "kinds.0 cannot be used" in str(wrong.exception)
    assert "has no build" in str(cairn("show", str(tmp_path / "gone")).exception)
