import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

from agent.errors import SetupError  # noqa: E402 - only where torch is
from lab.plan.memory import layer_bytes  # noqa: E402
from lab.plan.shapes import KNOWN, shape_of  # noqa: E402

pytestmark = pytest.mark.train

SMALL = {
    "vocab_size": 500,
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
KINDS = {"qwen2": ("Qwen2Config", "Qwen2ForCausalLM"), "qwen3": ("Qwen3Config", "Qwen3ForCausalLM")}


def model(kind: str, *, layers: int = 2, tied: bool = True, device: str = "cpu") -> Any:
    config, built = KINDS[kind]
    shape = getattr(transformers, config)(**SMALL, num_hidden_layers=layers, tie_word_embeddings=tied)
    with torch.device(device):
        return getattr(transformers, built)(shape)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("Qwen/Qwen2.5-3B", 3.09),
        ("Qwen/Qwen2.5-7B-Instruct", 7.62),
        ("Qwen/Qwen2.5-32B-Instruct", 32.76),
        ("Qwen/Qwen3-4B", 4.02),
        ("Qwen/Qwen3-8B", 8.19),
    ],
)
def test_known_models_have_as_many_weights_as_their_makers_say(name: str, billions: float) -> None:
    assert KNOWN[name].parameters / 1e9 == pytest.approx(billions, abs=0.006)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("tied", [True, False])
def test_the_formula_counts_the_weights_of_a_real_model(kind: str, tied: bool, tmp_path: Path) -> None:
    made = model(kind, layers=3, tied=tied, device="meta")
    (tmp_path / "config.json").write_text(json.dumps(made.config.to_dict()), encoding="utf-8")
    assert shape_of(str(tmp_path)).parameters == made.num_parameters()


def test_a_shape_that_is_not_known_is_refused_with_what_can_be_given(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"one of Qwen/Qwen2\.5-3B"):
        shape_of("someone/model")
    (tmp_path / "config.json").write_text('{"model_type": "mamba"}', encoding="utf-8")
    with pytest.raises(SetupError, match="'mamba' has no formula here"):
        shape_of(str(tmp_path))


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_formula_of_activations_is_what_torch_saves_of_a_layer(kind: str, tmp_path: Path) -> None:
    few, more = (saved_bytes(model(kind, layers=layers)) for layers in (2, 4))
    made = model(kind, device="meta")
    (tmp_path / "config.json").write_text(json.dumps(made.config.to_dict()), encoding="utf-8")
    shape = shape_of(str(tmp_path))
    copies = 2 * shape.layer_parameters / TOKENS  # autocast saves each weight in bfloat16
    assert layer_bytes(shape) == pytest.approx((more - few) / 2 / TOKENS - copies, rel=0.01)


TOKENS = 512


def saved_bytes(made: Any) -> int:
    """What the backward pass of a model's trunk needs, each memory once, without the weights."""
    seen: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        memory = tensor.untyped_storage()
        seen[memory.data_ptr()] = memory.nbytes()
        return tensor

    def unpack(tensor: Any) -> Any:
        return tensor

    own = {weight.untyped_storage().data_ptr() for weight in made.parameters()}
    ids = torch.zeros((1, TOKENS), dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack), torch.autocast("cpu", torch.bfloat16):
        kept = made.model(ids, use_cache=False).last_hidden_state  # held, so that no memory is used twice
    assert kept.requires_grad
    return sum(size for place, size in seen.items() if place not in own)
