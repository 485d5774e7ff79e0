"""Muon in float32 changes weights as torch's does in bfloat16, and either goes on from the other's state."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

import torch

from train.common.process_group import ProcessGroup
from train.common.recipe import SftOptimizer
from train.sft import optimizers
from train.sft.optimizers import Muon, Optimizers

pytestmark = pytest.mark.train


def after_steps(
    steps: int, monkeypatch: pytest.MonkeyPatch, *, bf16: list[bool]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Weights and momenta; the precision of each step is given."""
    drawn = torch.Generator().manual_seed(1)
    weights = [torch.nn.Parameter(torch.randn(shape, generator=drawn)) for shape in ((24, 60), (60, 24), (24, 24))]
    optimizer = Muon(weights, lr=0.1, weight_decay=0.01)
    for step in range(steps):
        for weight in weights:
            weight.grad = torch.randn(weight.shape, generator=drawn)
        monkeypatch.setattr(optimizers, "has_bf16", lambda step=step: bf16[step])
        optimizer.step()
    return [weight.detach() for weight in weights], [kept["momentum_buffer"] for kept in optimizer.state.values()]


@pytest.mark.parametrize("mixed", [[False] * 3, [True, False, True]], ids=["float32", "by turns"])
def test_an_update_in_float32_is_torch_s_but_for_its_rounding(mixed: list[bool], monkeypatch: pytest.MonkeyPatch):
    weights, momenta = after_steps(3, monkeypatch, bf16=mixed)
    expected, their_momenta = after_steps(3, monkeypatch, bf16=[True] * 3)
    begun, _ = after_steps(0, monkeypatch, bf16=[])
    for ours, theirs, first in zip(weights, expected, begun, strict=True):
        assert not torch.equal(ours, theirs), "another precision was used"
        assert (ours - theirs).abs().mean() < 0.02 * (theirs - first).abs().mean()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(momenta, their_momenta, strict=True))


def test_a_weight_without_a_gradient_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(optimizers, "has_bf16", lambda: False)
    weights = [torch.nn.Parameter(torch.ones(4, 6)) for _ in range(2)]
    weights[0].grad = torch.ones(4, 6)
    Muon(weights, lr=0.1, weight_decay=0.01).step()
    assert not torch.equal(weights[0], torch.ones(4, 6))
    assert torch.equal(weights[1], torch.ones(4, 6))


@pytest.mark.parametrize("family", ["LlamaForCausalLM", "GPT2LMHeadModel"])
@pytest.mark.parametrize("tied", [True, False])
def test_muon_takes_neither_embeddings_nor_the_matrix_of_the_logits(family: str, tied: bool):
    transformers: Any = pytest.importorskip("transformers")
    model_class = getattr(transformers, family)
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    more = {"intermediate_size": 24} if family.startswith("Llama") else {"n_positions": 70}
    model = model_class(model_class.config_class(**sizes, **more, tie_word_embeddings=tied))
    rates: dict[str, Any] = {
        "muon_lr": 0.1,
        "adamw_lr": 0.1,
        "final_lr": 0.1,
        "warmup_steps": 1,
        "weight_decay": 0.0,
        "clip": 1.0,
    }
    settings = SftOptimizer(tokens=1000, batch_tokens=100, bf16=False, **rates)
    muon, adamw = Optimizers(model, settings, ProcessGroup()).all
    by_muon = {tuple(weight.shape) for group in muon.param_groups for weight in group["params"]}
    by_adamw = [tuple(weight.shape) for group in adamw.param_groups for weight in group["params"]]
    assert by_muon
    assert not any({50, 70} & set(shape) for shape in by_muon), "neither the vocabulary nor positions"
    assert by_adamw.count((50, 16)) == (1 if tied else 2)
