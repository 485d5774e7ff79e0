"""A run whose rollouts come from a server that gets the trainer's weights before each step.

The server is small and real; TRL's `sync_weights`, which needs vLLM and CUDA, sends them over HTTP here. That it does
so over NCCL to a vLLM server is not tested (docs/training.md).
"""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
safetensors: Any = pytest.importorskip("safetensors.torch")

from trl.generation.vllm_generation import VLLMGeneration  # noqa: E402 - only where TRL is

from agent.errors import SetupError  # noqa: E402
from tests.train.rl.small import hot_checkpoint, recipe  # noqa: E402
from tests.train.rl.weight_server import Weighted, weight_server  # noqa: E402
from train.rl.adapter import RlTrainer  # noqa: E402
from train.rl.live_vllm import ServerLive  # noqa: E402
from train.rl.run import RlRun  # noqa: E402

pytestmark = pytest.mark.train

STEPS = 2


class HttpGeneration:
    """In the place of TRL's `vllm_generation`."""

    def __init__(self, trainer: RlTrainer, url: str) -> None:
        self._trainer = trainer
        self._url = url

    def sync_weights(self) -> None:
        weights = {name: tensor.detach().contiguous() for name, tensor in self._trainer.bare.named_parameters()}
        httpx2.post(
            f"{self._url}/weights", content=safetensors.save(weights), timeout=60, trust_env=False
        ).raise_for_status()


def run(server: Weighted, start: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, float]]:
    """A run of two steps; gives the figures of each."""
    generation = property(lambda trainer: HttpGeneration(trainer, server.url))
    monkeypatch.setattr(RlTrainer, "vllm_generation", generation, raising=False)
    small = recipe(
        STEPS,
        start=str(start),
        rollout={"prompts": 1, "group": 3, "policy_tokens": 48, "answer_tokens": 16},
        optimizer={"lr": 1e-3, "micro_batches": 1},
    )
    figures: list[Mapping[str, float]] = []
    live = ServerLive(str(start), url=server.url)
    assert RlRun(small, out, threads=1, live=live).go(lambda _, step: figures.append(step))
    return figures


def test_each_step_is_sampled_by_the_server_with_the_weights_of_the_steps_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = hot_checkpoint(tmp_path / "start")
    with weight_server(start) as server:
        figures = run(server, start, tmp_path / "run", monkeypatch)
    first, second = server.received
    begun = safetensors.load_file(start / "model.safetensors")
    ended = safetensors.load_file(tmp_path / "run" / "hub" / "model.safetensors")
    assert all(torch.equal(first[name], begun[name]) for name in first)
    assert any(not torch.equal(second[name], first[name]) for name in first)
    assert any(not torch.equal(ended[name], second[name]) for name in second)
    assert server.requests >= STEPS * 3
    assert [step["trainer/logprob_difference_most"] < 1e-3 for step in figures] == [True, True]


def test_a_server_that_refuses_the_weights_ends_the_run_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = hot_checkpoint(tmp_path / "start")
    with weight_server(start) as server:
        server.refuse = True
        with pytest.raises(SetupError, match=r"(?s)did not take the trainer's weights .*500.*go on with --resume"):
            run(server, start, tmp_path / "run", monkeypatch)
    assert server.requests == 0


def test_before_a_trainer_is_there_no_weights_are_sent(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="gets its weights from the trainer"):
        ServerLive(str(hot_checkpoint(tmp_path / "start")), url="http://127.0.0.1:9").refresh(None)


def test_trl_sends_weights_by_the_name_that_the_adapter_calls() -> None:
    """Without an argument: TRL sends the trainer's own model."""
    assert list(inspect.signature(VLLMGeneration.sync_weights).parameters) == ["self"]
