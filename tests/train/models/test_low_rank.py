"""The adapter's layer in one step says what peft's says, with the same gradients, and leaves what is not plain to peft."""

import importlib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("peft")

from tests.train.starts import start  # noqa: E402 - only where torch is
from train.models.adapters import use_low_rank  # noqa: E402

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),  # peft's look at it
]
peft: Any = importlib.import_module("peft")
transformers: Any = importlib.import_module("transformers")


def adapted(folder: Path, kind: str, **settings: Any) -> Any:
    """A model with an adapter as peft makes it, whose matrices add something."""
    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(start(kind, folder / kind), dtype=torch.float32)
    config = peft.LoraConfig(r=4, lora_alpha=12, target_modules="all-linear", task_type="CAUSAL_LM", **settings)
    made = peft.get_peft_model(model, config)
    torch.manual_seed(1)
    for weight in made.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.1)
    return made


def found(model: Any, *, bf16: bool = False) -> tuple[Any, list[Any]]:
    """Logits, and the gradients of a loss of them."""
    ids = torch.arange(40).view(2, 20) * 7 % 600
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        logits = model(ids).logits
    torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), ids.flatten()).backward()
    return logits.detach().float(), [weight.grad for weight in model.parameters() if weight.requires_grad]


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma3"])  # qwen2 has biases
def test_logits_and_gradients_are_those_of_peft(kind: str, tmp_path: Path) -> None:
    model = adapted(tmp_path, kind)
    logits, gradients = found(model)
    assert use_low_rank(model) == 14
    again, others = found(model)
    assert torch.allclose(logits, again, atol=1e-5)
    assert all(torch.allclose(one, two, rtol=1e-4, atol=1e-6) for one, two in zip(gradients, others, strict=True))
    assert all(weight.grad is None for weight in model.parameters() if not weight.requires_grad)


def test_in_bfloat16_it_is_no_further_from_float32_than_peft(tmp_path: Path) -> None:
    model = adapted(tmp_path, "llama")
    truth = found(model)[0]
    theirs = (found(model, bf16=True)[0] - truth).norm()
    use_low_rank(model)
    ours = (found(model, bf16=True)[0] - truth).norm()
    assert 0 < ours < 1.2 * theirs


def test_it_follows_the_adapter_that_is_switched_off_exchanged_or_merged(tmp_path: Path) -> None:
    model = adapted(tmp_path, "llama")
    plain = deepcopy(model)
    use_low_rank(model)
    ids = torch.tensor([[3, 5, 7, 11]])
    for both in (model, plain):
        torch.manual_seed(2)
        both.add_adapter("other", peft.LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    with torch.no_grad():
        for change in ("other", "default"):
            model.set_adapter(change)
            plain.set_adapter(change)
            assert torch.allclose(model(ids).logits, plain(ids).logits, atol=1e-5)
        with model.disable_adapter(), plain.disable_adapter():
            off = model(ids).logits
            assert torch.allclose(off, plain(ids).logits, atol=1e-6)
        on = model(ids).logits
        assert not torch.allclose(on, off, atol=1e-2)
        copied = deepcopy(model)
        torch.nn.init.zeros_(copied.base_model.model.model.layers[0].mlp.up_proj.lora_B["default"].weight)
        assert torch.allclose(model(ids).logits, on), "a copy computes with its own weights"
        assert not torch.allclose(copied(ids).logits, on, atol=1e-4)
        model.merge_adapter()
        assert torch.allclose(model(ids).logits, on, atol=1e-4)


def test_what_is_not_plain_is_left_to_peft(tmp_path: Path) -> None:
    assert use_low_rank(adapted(tmp_path / "one", "llama", lora_dropout=0.1)) == 0
    assert use_low_rank(adapted(tmp_path / "two", "llama", use_dora=True)) == 0


def test_an_input_without_a_gradient_gets_none(tmp_path: Path) -> None:
    layer = torch.nn.Linear(6, 5)
    made = peft.get_peft_model(torch.nn.Sequential(layer), peft.LoraConfig(r=2, target_modules=["0"]))
    assert use_low_rank(made) == 1
    x = torch.randn(3, 4, 6)
    made(x).sum().backward()
    assert x.grad is None
    y = x.clone().requires_grad_()
    made(y).sum().backward()
    assert y.grad.shape == x.shape
