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


def commands() -> list[list[list[str]]]:
    """The arguments of every `cairn` of the page, block by block."""
    blocks = [block for block in blocks_in(PAGE, (ROOT / PAGE).read_text(encoding="utf-8")) if block.language == "sh"]
    return [[words for line in lines_of(block) for words in line.cairn] for block in blocks]


def by_id(path: Path) -> dict[str, str]:
    """A question's id → its line."""
    return {json.loads(line)["id"]: line for line in path.read_text(encoding="utf-8").splitlines()}


def a_step_by_reward(folder: Path) -> None:
    """The page's reinforcement learning on this folder's questions, one step of it."""
    recipe = (ROOT / "train/recipes/own_rl.toml").read_text(encoding="utf-8")
    for said, meant in (("steps = 40", "steps = 1"), ("warmup_steps = 5", "warmup_steps = 0"), ("= 100", "= 2")):
        assert said in recipe
        recipe = recipe.replace(said, meant)
    (folder / "own_rl.toml").write_text(recipe, encoding="utf-8")
    held_out = set(by_id(folder / "rows.held-out.jsonl"))
    further = [line for key, line in by_id(folder / "questions.jsonl").items() if key not in held_out]
    (folder / "more.jsonl").write_text("\n".join(further), encoding="utf-8")
    (words,) = (words for block in commands() for words in block if words[:2] == ["train", "rl"])
    assert cairn([word.replace("train/recipes/", "") for word in words]) == 0
    assert (folder / "runs/rl/hub/model.safetensors").exists()


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
    first = commands()[0]
    names = [" ".join(words[:2]) for words in first]
    assert names[:2] == ["data trajectories", "train sft"]
    assert "checkpoint export" in names
    for words in first:
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
    a_step_by_reward(tmp_path)
