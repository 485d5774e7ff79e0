"""Runs of two processes on one CPU that hold shares of the weights (FSDP2 through accelerate): they learn as one does."""

import json
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
safetensors: Any = pytest.importorskip("safetensors.torch")
formats: Any = pytest.importorskip("torch.distributed.checkpoint.format_utils")

from agent.errors import SetupError  # noqa: E402 - only where torch is
from tests.train.rl.small import hot_checkpoint, recipe  # noqa: E402
from train.rl.recipe import read_rl_recipe  # noqa: E402
from train.rl.run import RlRun  # noqa: E402
from train.rl.sharding import check_shares  # noqa: E402

pytestmark = pytest.mark.train

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "train" / "recipes" / "papers" / "fsdp2_2gpus.yaml"
RECIPE = """
kind = "rl"
name = "shares"
start = "{start}"
protocols = ["multisearch"]
seed = 3
steps = 3
[data]
people = 30
questions_per_world = 6
[rollout]
engine = "embedded"
prompts = 2
group = 3
rounds = 1
passages = 6
policy_tokens = 96
answer_tokens = 32
[[reward]]
name = "outcome"
[learning]
name = "grpo"
overlong = {{ longest = 256, buffer = 256, penalty = 0.5 }}
kl = [[0.0, 0.05]]
[optimizer]
lr = 1e-4
micro_batches = 2
[report]
save_every_steps = 1
keep = 3
traces = 1
"""


@dataclass(frozen=True)
class Shared:
    """What two processes with shares of the weights left."""

    start: Path
    path: Path
    out: Path
    """Three steps, and the last one again from the state before it."""
    ended: Path
    """The model of the three steps."""
    adapter_path: Path
    adapter: Path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Train in two processes of this machine, as the command of a plan does, with the recipes' own configuration."""
    folder = tmp_path_factory.mktemp("shared")
    start = hot_checkpoint(folder / "start")
    path, adapter_path = folder / "recipe.toml", folder / "adapter.toml"
    path.write_text(RECIPE.format(start=start), encoding="utf-8")
    adapted = RECIPE.replace("steps = 3", "steps = 1").replace("embedded", "transformers").replace("1e-4", "1e-3")
    adapter_path.write_text(adapted.format(start=start) + "[adapter]\nrank = 4\nalpha = 8\n", encoding="utf-8")
    made = Shared(start, path, folder / "out", folder / "ended", adapter_path, folder / "adapter")
    stopped = {
        made.out / "hub": made.ended,
        made.out / "states" / "checkpoint-3": folder / "checkpoint-3",
    }
    launched(
        folder,
        command(path, made.out),
        command(path, made.out, "--resume", moves=stopped),
        command(adapter_path, made.adapter),
    )
    return made


def command(path: Path, out: Path, *options: str, moves: Mapping[Path, Path] | None = None) -> dict[str, Any]:
    arguments = ["train", "rl", "--recipe", str(path), "--threads", "1", "--out", str(out), *options]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {
        "arguments": arguments,
        "port": port,
        "moves": {str(old): str(new) for old, new in (moves or {}).items()},
    }


def launched(folder: Path, *commands: Mapping[str, Any]) -> None:
    written = folder / "commands.json"
    written.write_text(json.dumps(commands), encoding="utf-8")
    command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(CONFIG)]
    command += ["--num_processes", "2", "--mixed_precision", "no", "--main_process_port", "0", "-m"]
    command += ["tests.train.rl.forked", str(written)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-4000:]


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "monitors.jsonl").read_text(encoding="utf-8").splitlines()]


def weights(hub: Path) -> Mapping[str, Any]:
    return safetensors.load_file(hub / "model.safetensors")


def merged(shares: Path, folder: Path) -> Mapping[str, Any]:
    """The weights of a state that every process has written its share of."""
    formats.dcp_to_torch_save(shares, folder / "whole.pt")
    return torch.load(folder / "whole.pt", weights_only=True)["model"]


def apart(first: Mapping[str, Any], second: Mapping[str, Any], start: Mapping[str, Any]) -> float:
    """How far two models lie apart, as a share of what the first one learned."""
    learned = sum(float((first[name] - one.float()).square().sum()) for name, one in start.items())
    between = sum(float((first[name] - second[name]).square().sum()) for name in start)
    return (between / learned) ** 0.5


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_processes_with_shares_of_the_weights_learn_what_one_learns_also_after_a_stop(
    shared: Shared, tmp_path: Path
) -> None:
    alone = tmp_path / "alone"
    figures: list[Mapping[str, float]] = []
    assert RlRun(read_rl_recipe(shared.path), alone, threads=1).go(lambda _, step: figures.append(step))
    assert_learned_alike(lines(shared.out), figures)
    assert figures[-1]["trainer/kl"] > 1e-6
    before, one, ended = weights(shared.start), weights(alone / "hub"), weights(shared.ended)
    assert apart(one, ended, before) < 0.02
    for step in (1, 2):
        shares = shared.out / "states" / f"checkpoint-{step}" / "pytorch_model_fsdp_0"
        sizes = [(shares / f"__{rank}_0.distcp").stat().st_size for rank in (0, 1)]
        assert max(sizes) < 1.1 * min(sizes)  # each has written its half
        assert apart(weights(alone / "states" / f"checkpoint-{step}"), merged(shares, tmp_path), before) < 0.02
    again = weights(shared.out / "hub")
    assert all(torch.equal(again[name], weight) for name, weight in ended.items())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_adapter_in_shares_learns_what_it_learns_in_one_process(shared: Shared, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    figures: list[Mapping[str, float]] = []
    assert RlRun(read_rl_recipe(shared.adapter_path), alone, threads=1).go(lambda _, step: figures.append(step))
    assert_learned_alike(lines(shared.adapter), figures)
    begun, one, two = weights(shared.start), weights(alone / "hub"), weights(shared.adapter / "hub")
    assert apart(one, two, begun) < 0.05
    kept = [safetensors.load_file(out / "adapter" / "adapter_model.safetensors") for out in (alone, shared.adapter)]
    assert kept[0].keys() == kept[1].keys()
    assert all(torch.allclose(kept[0][name], kept[1][name], atol=1e-4) for name in kept[0])


def assert_learned_alike(shared: Sequence[Mapping[str, Any]], alone: Sequence[Mapping[str, float]]) -> None:
    """Step by step: the same rollouts, and the same gradient, not twice it or a half."""
    assert [line["step"] for line in shared] == list(range(1, len(alone) + 1))
    for two, one in zip(shared, alone, strict=True):
        for name in ("length/mean", "reward/total"):
            assert two[name] == pytest.approx(one[name], abs=1e-6), name
        assert two["trainer/grad_norm"] > 1e-3
        assert two["trainer/grad_norm"] == pytest.approx(one["trainer/grad_norm"], rel=1e-3)
        assert two["trainer/loss"] == pytest.approx(one["trainer/loss"], abs=1e-6)
        assert 0.98 < two["trainer/ratio_mean"] < 1.02
    assert abs(shared[0]["trainer/kl"]) < 1e-6  # the reference is the start in every process


def test_what_cannot_be_trained_from_shares_of_the_weights_is_refused() -> None:
    second, first = SimpleNamespace(fsdp_version=2), SimpleNamespace(fsdp_version=1)
    for engine in ("transformers", "embedded"):
        taken = recipe(rollout={"engine": engine})
        check_shares(taken, second, zero3=False, nccl=False)
        check_shares(taken, None, zero3=False, nccl=False)
        with pytest.raises(
            SetupError, match=f"the engine '{engine}' needs them whole: take the engine 'vllm-server' on"
        ):
            check_shares(taken, None, zero3=True, nccl=False)
        with pytest.raises(SetupError, match="write fsdp_version: 2"):
            check_shares(taken, first, zero3=False, nccl=False)
    server = {"engine": "vllm-server", "server": "http://127.0.0.1:8000"}
    for rollout in ({"engine": "vllm"}, server):
        with pytest.raises(SetupError, match="needs them whole: take the engine 'transformers' or 'embedded' or"):
            check_shares(recipe(rollout=rollout), second, zero3=False, nccl=False)
    check_shares(recipe(rollout=server), second, zero3=False, nccl=True)
    gaining = recipe(learning={"name": "grpo", "credit": {"information_gain": {"discount": 1.0}}})
    with pytest.raises(SetupError, match="information gain is computed where each process holds the whole model"):
        check_shares(gaining, second, zero3=False, nccl=False)
    with pytest.raises(SetupError, match="an adapter in shares has no way to a vLLM server"):
        check_shares(recipe(rollout=server, adapter={"rank": 4, "alpha": 8}), second, zero3=False, nccl=True)
