"""The commands of docs/own-model.md, one after the other, on a reader's own questions, with a tiny model."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("peft")

from agent.cli import run as cairn
from tests.docs.blocks import ROOT, blocks_in
from tests.docs.shell import lines_of
from tests.train.own_questions import write_own
from tests.train.starts import start

pytestmark = pytest.mark.train

PAGE = "docs/own-model.md"
NAMED = "smollm2-135m-instruct"


def commands() -> list[list[str]]:
    """The arguments of every `cairn` in the page's first block of shell."""
    first = next(
        block for block in blocks_in(PAGE, (ROOT / PAGE).read_text(encoding="utf-8")) if block.language == "sh"
    )
    return [words for line in lines_of(first) for words in line.cairn]


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.timeout(240)
@pytest.mark.slow
def test_the_commands_of_the_page_lead_from_questions_to_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train").symlink_to(ROOT / "train")
    write_own(tmp_path)
    assert (lines(tmp_path / "documents.jsonl"), lines(tmp_path / "questions.jsonl")) == (20, 50)
    start("llama", tmp_path / "tiny", seed=1, max_position_embeddings=2600)
    names = [" ".join(words[:2]) for words in commands()]
    assert names[:2] == ["data trajectories", "train sft"]
    assert "checkpoint export" in names
    for words in commands():
        command = ["./tiny" if word == NAMED else word for word in words]
        more = ["--threads", "1"] if words[:2] == ["train", "sft"] else []
        assert cairn([*command, *more]) == 0, words
        if words[0] == "data":
            assert lines(tmp_path / "rows.jsonl") >= 50
            assert lines(tmp_path / "rows.held-out.jsonl") == 5
    said = capsys.readouterr().err
    assert "will take about" in " ".join(said.split())
    assert {path.name for path in (tmp_path / "runs/mine").iterdir()} >= {"adapter", "ct2", "eval", "hub"}
    log = (tmp_path / "runs/mine/log.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(log[-1])["policy_loss"] < json.loads(log[0])["policy_loss"]
    assert "with an adapter of rank 32" in (tmp_path / "runs/mine/hub/README.md").read_text(encoding="utf-8")
