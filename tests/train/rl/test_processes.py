"""Runs of two processes on one CPU: they end with the same kind of model as a run of one."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
safetensors: Any = pytest.importorskip("safetensors.torch")

from tests.train.rl.small import hot_checkpoint  # noqa: E402 - only where torch is
from train.rl.states import newest_state  # noqa: E402
from train.safety.manifest import read_manifest  # noqa: E402

pytestmark = [pytest.mark.train, pytest.mark.slow, pytest.mark.timeout(600)]

RECIPE = """
kind = "rl"
name = "two"
start = "{start}"
protocols = ["multisearch"]
seed = 3
steps = 2
[data]
people = 30
questions_per_world = 6
[rollout]
prompts = 2
group = 3
policy_tokens = 192
answer_tokens = 64
[[reward]]
name = "outcome"
[learning]
name = "grpo"
overlong = {{ longest = 192, buffer = 192, penalty = 0.5 }}
[optimizer]
lr = 1e-4
micro_batches = 2
[report]
save_every_steps = 1
traces = 1
"""


def launched(*arguments: object) -> None:
    """Run a module in two processes of this machine."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    command += [str(argument) for argument in arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


def weights(hub: Path) -> Mapping[str, Any]:
    return safetensors.load_file(hub / "model.safetensors")


def test_two_processes_end_with_the_same_kind_of_model_as_one(tmp_path: Path) -> None:
    start, out, path = hot_checkpoint(tmp_path / "start"), tmp_path / "out", tmp_path / "recipe.toml"
    path.write_text(RECIPE.format(start=start), encoding="utf-8")
    launched("agent.cli", "train", "rl", "--recipe", path, "--threads", "1", "--out", out)
    lines = [json.loads(line) for line in (out / "monitors.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["step"], line["rollouts"]) for line in lines] == [(1, 6.0), (2, 6.0)]
    learned = [line for line in lines if line["trainer/rows"]]
    assert learned
    assert all(0.98 < line["trainer/ratio_mean"] < 1.02 for line in learned)
    manifest = read_manifest(out)
    assert ([one.state for one in manifest.sessions], manifest.figures["steps"]) == (["done"], 2.0)
    assert newest_state(out) == out / "states" / "checkpoint-2"
    assert {"README.md", "cairn.json", "config.json", "model.safetensors", "tokenizer.json"} <= {
        file.name for file in (out / "hub").iterdir()
    }
    before, after = weights(start), weights(out / "hub")
    assert {name: one.shape for name, one in after.items()} == {name: one.shape for name, one in before.items()}
    assert all(one.isfinite().all() for one in after.values())
    assert any(not torch.equal(after[name], before[name].float()) for name in before)
    kept = weights(out / "states" / "checkpoint-2")
    assert all(torch.equal(kept[name], one) for name, one in after.items())
