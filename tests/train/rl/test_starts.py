"""Reinforcement learning from models that others made, with all their weights and with an adapter."""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("peft")

from agent import cli  # noqa: E402 - only where torch is
from agent.settings import load_settings  # noqa: E402
from tests.train.rl.small import recipe as small  # noqa: E402
from tests.train.starts import ending, rows_file  # noqa: E402
from tests.train.starts import recipe as supervised  # noqa: E402
from train.ppo.recipe import PpoRecipe  # noqa: E402
from train.ppo.run import PpoRun  # noqa: E402
from train.rl.recipe import RlRecipe  # noqa: E402
from train.rl.run import RlRun  # noqa: E402
from train.sft.run import SftRun  # noqa: E402

safetensors: Any = importlib.import_module("safetensors.torch")
transformers: Any = importlib.import_module("transformers")
pytestmark = pytest.mark.train

WITHOUT = (
    "answers are no longer closed",
    "every rollout gets the same reward",
    "rollouts run into their length limit",
    "the policy writes noise",
)
"""What watches a policy that can say something; this one is new."""
BUDGETS = {"prompts": 2, "group": 3, "rounds": 1, "passages": 2, "policy_tokens": 32, "answer_tokens": 8}
LENGTH = {"longest": 32, "buffer": 32, "penalty": 0.5}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ending("llama", tmp_path_factory.mktemp("start") / "llama")


@pytest.fixture(scope="module")
def adapter(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained for two steps, far enough to say something else than its model."""
    out = tmp_path_factory.mktemp("adapter")
    settings = {"tokens": 1500, "adamw_lr": 1e-3}
    assert SftRun(supervised(llama, rows_file(out), adapter=8, optimizer=settings), out).run(lambda _: None)
    return out / "adapter"


def of_rl(begin: Path, **changes: Any) -> RlRecipe:
    rollout = {**BUDGETS, **changes.pop("rollout", {})}
    learning = {"name": "grpo", "overlong": LENGTH, **changes.pop("learning", {})}
    return small(
        2, start=str(begin), rollout=rollout, learning=learning, safety={"without": WITHOUT}, **changes
    )  # fmt: skip


def figures_of(made: RlRecipe, out: Path) -> list[Mapping[str, float]]:
    steps: list[Mapping[str, float]] = []
    assert RlRun(made, out, threads=1).go(lambda _, figures: steps.append(figures))
    return steps


def weights(folder: Path, name: str = "model.safetensors") -> dict[str, Any]:
    return dict(safetensors.load_file(folder / name))


def differ(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    assert one.keys() == two.keys()
    return any(not torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("rank", [0, 8])
@pytest.mark.parametrize("engine", ["embedded", "transformers"])
def test_the_engine_says_what_the_trainer_says_from_any_start(
    engine: str, rank: int, llama: Path, adapter: Path, tmp_path: Path
) -> None:
    begin = adapter if engine == "embedded" else llama
    changes: dict[str, Any] = {"adapter": {"rank": rank, "alpha": 2 * rank}} if rank else {}
    steps = figures_of(of_rl(begin, rollout={"engine": engine}, optimizer={"lr": 1e-2}, **changes), tmp_path)
    assert [step["trainer/logprob_difference_most"] < 1e-3 for step in steps] == [True, True]
    assert steps[0]["trainer/grad_norm"] > 0
    hub = tmp_path / "hub"
    for name in ("tokenizer.json", "chat_template.jinja", "LICENSE.txt"):
        assert (hub / name).read_bytes() == (llama / name).read_bytes()
    before = adapter.parent / "hub" if engine == "embedded" else llama
    assert differ(weights(hub), weights(before))
    transformers.AutoModelForCausalLM.from_pretrained(hub)
    assert (tmp_path / "adapter").exists() == bool(rank)
    if rank:
        said = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
        assert said["base_model_name_or_path"] == str(llama.resolve())
        torch.testing.assert_close(weights(hub)["model.norm.weight"], weights(llama)["model.norm.weight"])


@pytest.mark.parametrize("rank", [0, 8])
def test_the_reference_is_the_start_with_its_adapter(rank: int, adapter: Path, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"adapter": {"rank": rank, "alpha": 2 * rank}} if rank else {}
    learning = {"kl": ((0.0, 0.1), (1.0, 0.1))}
    steps = figures_of(of_rl(adapter, learning=learning, optimizer={"lr": 3e-2}, **changes), tmp_path)
    assert steps[0]["trainer/kl"] == pytest.approx(0, abs=1e-6)
    assert steps[1]["trainer/kl"] > 1e-4


@pytest.mark.slow
def test_a_run_with_an_adapter_that_was_cut_ends_in_the_same_weights(adapter: Path, tmp_path: Path) -> None:
    learning = {"kl": ((0.0, 0.1), (1.0, 0.1))}
    made = of_rl(adapter, adapter={"rank": 8, "alpha": 16}, learning=learning, optimizer={"lr": 1e-2})
    figures_of(made, tmp_path / "whole")

    class Cut(Exception):
        """What a kill would be, between two steps."""

    def cut(step: int, _: Mapping[str, float]) -> None:
        if step == 2:
            raise Cut

    with pytest.raises(Cut):
        RlRun(made, tmp_path / "cut", threads=1).go(cut)
    assert RlRun(made, tmp_path / "cut", threads=1).go(lambda _, __: None, resume=True)
    assert not differ(weights(tmp_path / "cut" / "hub"), weights(tmp_path / "whole" / "hub"))
    name = "adapter_model.safetensors"
    ended = (weights(tmp_path / run / "adapter", name) for run in ("cut", "whole"))
    assert not differ(*ended)


def of_ppo(begin: Path, rank: int) -> PpoRecipe:
    said: dict[str, Any] = of_rl(begin, rollout={"engine": "transformers", "group": 2, "concurrency": 1}).model_dump()
    said |= {"kind": "ppo", "learning": {"name": "ppo", "critic_lr": 1e-2, "kl": ((0.0, 0.1),), "overlong": LENGTH}}
    said["optimizer"] |= {"lr": 1e-2, "minibatches": 2, "gradient_checkpointing": bool(rank)}
    if rank:
        said["adapter"] = {"rank": rank, "alpha": 2 * rank}
    return PpoRecipe.model_validate(said)


@pytest.mark.parametrize(("kind", "rank"), [("llama", 0), ("llama", 8), ("gemma2", 0), ("granite", 8)])
def test_ppo_takes_them_too_with_logits_as_their_architecture_has_them(kind: str, rank: int, tmp_path: Path) -> None:
    begin = ending(kind, tmp_path / "start")
    steps: list[Mapping[str, float]] = []
    assert PpoRun(of_ppo(begin, rank), tmp_path / "run").go(lambda _, figures: steps.append(figures))
    assert steps[0]["trainer/sampler_gap_highest"] < 1e-3
    assert steps[0]["trainer/kl"] == pytest.approx(0, abs=1e-6)
    assert differ(weights(tmp_path / "run" / "hub"), weights(begin))
    assert (tmp_path / "run" / "adapter").exists() == bool(rank)


def test_what_they_leave_is_served_by_its_folder_and_its_adapter_is_a_start_again(
    adapter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = of_rl(adapter, adapter={"rank": 8, "alpha": 16})
    figures_of(made, tmp_path / "one")
    settings = load_settings(model=str(tmp_path / "one"))
    assert (settings.policy, settings.protocols) == ("transformers", ("multisearch",))
    figures_of(of_rl(tmp_path / "one" / "adapter"), tmp_path / "two")
    assert "Licence: that of" in (tmp_path / "two" / "hub" / "README.md").read_text(encoding="utf-8")
    exact = ("--quantization", "float32")  # weights of chance do not survive int8 on every processor
    assert cli.run(["checkpoint", "export", str(tmp_path / "two" / "hub"), "--out", str(tmp_path / "ct2"), *exact]) == 0


def test_an_adapter_has_no_dropout_here(llama: Path) -> None:
    with pytest.raises(ValueError, match="no dropout"):
        of_rl(llama, adapter={"rank": 8, "alpha": 16, "dropout": 0.1})
