"""A run whose rollouts come from a server that gets the trainer's weights before each step.

The server is small and real; those of vLLM itself are in test_vllm_runs.py. TRL's own way, over NCCL to a vLLM server,
needs GPUs: that it is called there is tested, with what it sends going through a folder as well.
"""

import inspect
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
safetensors: Any = pytest.importorskip("safetensors.torch")

from trl.generation.vllm_generation import VLLMGeneration  # noqa: E402 - only where TRL is

from agent.errors import SetupError  # noqa: E402
from tests.fixtures.make_engine import make_hub  # noqa: E402
from tests.train.rl.small import brief  # noqa: E402
from tests.train.rl.weight_server import Weighted, weight_server  # noqa: E402
from train.rl.adapter import RlTrainer  # noqa: E402
from train.rl.live_server import ServerLive  # noqa: E402
from train.rl.recipe import RlRecipe  # noqa: E402
from train.rl.run import RlRun  # noqa: E402
from train.rl.states import newest_state  # noqa: E402

pytestmark = pytest.mark.train

STEPS = 2
GROUP = 8
"""So many that some of them differ in length, and something is learned."""


@pytest.fixture
def start(tmp_path: Path) -> Path:
    return make_hub(tmp_path / "start")


@pytest.fixture
def server(start: Path) -> Generator[Weighted]:
    with weight_server(start) as served:
        yield served


def run(server: Weighted, start: Path, out: Path, **more: Any) -> list[Mapping[str, float]]:
    """A run of two steps; gives the figures of each."""
    rollout = {"prompts": 1, "group": GROUP}
    small = brief(
        start,
        STEPS,
        rollout={**rollout, "engine": "vllm-server", "server": server.url},
        optimizer={"micro_batches": 1},
    )
    figures: list[Mapping[str, float]] = []
    assert RlRun(small, out, threads=1, **more).go(lambda _, step: figures.append(step))
    return figures


def with_gpus(_: RlRecipe) -> bool:
    return True


def without_development_mode(server: Weighted) -> None:
    server.development = False


def gone(server: Weighted) -> None:
    server.url = "http://127.0.0.1:9"


def check_weights(server: Weighted, start: Path, out: Path) -> None:
    """The server got the start's weights, then those of the first step."""
    first, second = server.received
    begun = safetensors.load_file(start / "model.safetensors")
    ended = safetensors.load_file(out / "hub" / "model.safetensors")
    assert all(torch.equal(first[name], begun[name]) for name in first)
    assert any(not torch.equal(second[name], first[name]) for name in first)
    assert any(not torch.equal(ended[name], second[name]) for name in second)


def test_each_step_is_sampled_by_the_server_with_the_weights_of_the_steps_before(
    server: Weighted, start: Path, tmp_path: Path
) -> None:
    server.context_tokens = 80  # the prompt and all that may be sampled are more
    figures = run(server, start, tmp_path / "run")
    check_weights(server, start, tmp_path / "run")
    assert server.requests >= STEPS * GROUP
    assert server.longest == server.context_tokens
    assert [step["trainer/logprob_difference_most"] < 1e-3 for step in figures] == [True, True]


def test_with_gpus_trl_sends_the_weights(
    server: Weighted, start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = ServerLive(str(start), url=server.url)

    class Generation:
        """In the place of TRL's `vllm_generation`."""

        def __init__(self, trainer: RlTrainer) -> None:
            self._trainer = trainer

        def sync_weights(self) -> None:
            live.take(self._trainer.bare)

    monkeypatch.setattr(RlTrainer, "vllm_generation", property(Generation), raising=False)
    monkeypatch.setattr("train.rl.run.by_nccl", with_gpus)
    run(server, start, tmp_path / "run", live=live)
    check_weights(server, start, tmp_path / "run")


def test_a_server_that_refuses_the_weights_ends_the_run_in_a_sentence(
    server: Weighted, start: Path, tmp_path: Path
) -> None:
    server.refuse = True
    with pytest.raises(SetupError, match=r"(?s)did not take the trainer's weights .*500.*go on with --resume"):
        run(server, start, tmp_path / "run")
    assert server.requests == 0


def test_a_step_whose_server_was_started_again_is_not_learned_from(
    server: Weighted, start: Path, tmp_path: Path
) -> None:
    server.forget = True
    with pytest.raises(SetupError, match=r"no longer has the weights of this step: it was started again"):
        run(server, start, tmp_path / "run")
    assert newest_state(tmp_path / "run") is None


def test_a_server_of_another_model_gets_no_weights(server: Weighted, start: Path, tmp_path: Path) -> None:
    server.name = "other"
    with pytest.raises(SetupError, match=rf"serves other, and not {start}: start it with that model"):
        run(server, start, tmp_path / "run")
    assert not server.received


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (
            without_development_mode,
            r"404: .*: start it with VLLM_SERVER_DEV_MODE=1 .*WeightWorker",
        ),
        (
            gone,
            r"cannot be joined \(.*(refused|failed).*start it",
        ),
    ],
)
def test_a_server_that_takes_no_weights_is_refused_before_anything_is_loaded(
    server: Weighted, start: Path, tmp_path: Path, spoil: Callable[[Weighted], None], why: str
) -> None:
    spoil(server)
    with pytest.raises(SetupError, match=why):
        run(server, start, tmp_path / "run")


def test_before_a_trainer_is_there_no_weights_are_sent(start: Path) -> None:
    with pytest.raises(SetupError, match="gets its weights from the trainer"):
        ServerLive(str(start), url="http://127.0.0.1:9").refresh(None)


def test_trl_sends_weights_by_the_name_that_the_adapter_calls() -> None:
    """Without an argument: TRL sends the trainer's own model."""
    assert list(inspect.signature(VLLMGeneration.sync_weights).parameters) == ["self"]
