"""`cairn train reader` and `cairn bench transfer` from the command line."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.cli import run
from tests.train.reader.test_reading import reader

pytestmark = pytest.mark.train

RECIPE = Path(__file__).parents[3] / "lab" / "recipes" / "reader.toml"


def test_the_transfer_is_one_object_and_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    folder = str(reader().save(tmp_path / "reader"))
    options = ["--reader", folder, "--world", "test-v1", "--limit", "4", "--json", "--write"]
    assert run(["bench", "transfer", *options]) == 0
    figures = json.loads(capsys.readouterr().out)["worlds"]["test-v1"]
    assert figures["n"] == 4
    assert {"em_alone", "em_top_5", "em_as_many_as_fit", "em_evidence", "gain", "gain_low", "holds"} <= figures.keys()
    page = (tmp_path / "docs" / "bench" / "transfer.md").read_text(encoding="utf-8")
    assert "## test-v1, 4 questions" in page


def test_the_transfer_is_a_table_for_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    folder = str(reader().save(tmp_path / "reader"))
    assert run(["bench", "transfer", "--reader", folder, "--world", "test-v1", "--limit", "4"]) == 0
    printed = capsys.readouterr().out
    assert "from our evidence" in printed
    assert not (tmp_path / "docs").exists()


def test_a_reader_that_is_not_there_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["bench", "transfer", "--reader", str(tmp_path)]) == 1
    assert "train one with cairn train reader" in capsys.readouterr().err


def test_a_run_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "log.jsonl").write_text("{}\n", encoding="utf-8")
    assert run(["train", "reader", "--recipe", str(RECIPE), "--out", str(tmp_path)]) == 1
    assert "choose another --out" in capsys.readouterr().err
