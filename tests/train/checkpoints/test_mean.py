"""The mean of checkpoints is one checkpoint: its weights lie between theirs, and it answers as any other."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run as cairn
from agent.errors import CheckpointError
from tests.train.checkpoints.test_export import hub as hub

torch: Any = pytest.importorskip("torch")
safetensors: Any = pytest.importorskip("safetensors.torch")
pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.fixtures.make_engine import make_hub

    return make_hub(tmp_path_factory.mktemp("run") / "hub", seed=2)


def weights_of(hub: Path) -> dict[str, Any]:
    return safetensors.load_file(hub / "model.safetensors")


def test_each_weight_is_the_mean_of_both_and_the_exported_form_loads(hub: Path, other: Path, tmp_path: Path) -> None:
    from train.checkpoints.export import export_checkpoint

    assert cairn(["checkpoint", "mean", str(hub), str(other), "--out", str(tmp_path / "hub")]) == 0
    first, second, both = weights_of(hub), weights_of(other), weights_of(tmp_path / "hub")
    assert first.keys() == both.keys()
    assert any(not torch.equal(first[name], second[name]) for name in first)
    for name, tensor in both.items():
        torch.testing.assert_close(tensor, (first[name] + second[name]) / 2)
    assert export_checkpoint(tmp_path / "hub", tmp_path / "ct2").manifest.eos == "<eos>"


def test_one_checkpoint_has_no_mean(hub: Path, tmp_path: Path) -> None:
    from train.checkpoints.mean import mean_of

    with pytest.raises(CheckpointError, match="two checkpoints or more"):
        mean_of([hub], tmp_path / "hub")


def test_a_folder_without_weights_is_refused(hub: Path, tmp_path: Path) -> None:
    from train.checkpoints.mean import mean_of

    with pytest.raises(CheckpointError, match=r"holds no model\.safetensors"):
        mean_of([hub, tmp_path], tmp_path / "hub")


def test_another_shape_or_another_tokenizer_is_refused_and_nothing_is_written(hub: Path, tmp_path: Path) -> None:
    from train.checkpoints.mean import mean_of

    smaller = shutil.copytree(hub, tmp_path / "smaller")
    safetensors.save_file(dict(list(weights_of(hub).items())[1:]), smaller / "model.safetensors")
    with pytest.raises(CheckpointError, match="another shape"):
        mean_of([hub, smaller], tmp_path / "out")
    foreign = shutil.copytree(hub, tmp_path / "foreign")
    tokenizer = json.loads((foreign / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"]["never seen"] = 10_000
    (foreign / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    with pytest.raises(CheckpointError, match="another tokenizer"):
        mean_of([hub, foreign], tmp_path / "out")
    assert not (tmp_path / "out").exists()
