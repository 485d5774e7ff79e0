"""A LoRA adapter in a model: what peft makes of it, and a sentence for what does not fit or is not merged."""

import importlib
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.errors import CheckpointError
from agent.models.adapter import CONFIG, WEIGHTS, merged, open_adapter
from agent.models.base import open_base
from agent.models.ready import write_hub
from agent.models.safetensors_file import Floats, write_safetensors
from tests.agent.models.case import RandomWeights, hub_model, small_shape, write_small

MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
BASE = "small"


def write_adapter(folder: Path, tensors: dict[str, Floats], **options: Any) -> Path:
    """An adapter as peft saves it."""
    folder.mkdir(parents=True, exist_ok=True)
    shapes = {name: numbers.shape for name, numbers in tensors.items()}
    (folder / WEIGHTS).unlink(missing_ok=True)
    write_safetensors(folder / WEIGHTS, iter(tensors.items()), shapes, stored="float32")
    said = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": f"there/{BASE}"} | options
    (folder / CONFIG).write_text(json.dumps(said), encoding="utf-8")
    return folder


def pair(
    module: str = "layers.0.self_attn.q_proj", *, rank: int = 4, inside: int = 64, out: int = 64
) -> dict[str, Floats]:
    random = np.random.default_rng(3)
    name = f"base_model.model.model.{module}"
    return {
        f"{name}.lora_A.weight": random.standard_normal((rank, inside)).astype(np.float32),
        f"{name}.lora_B.weight": random.standard_normal((out, rank)).astype(np.float32),
    }


@pytest.mark.train
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft's own
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_rslora": True},
        {"alpha_pattern": {"q_proj": 32, "layers.1.mlp.up_proj": 2}, "rank_pattern": {"v_proj": 2}},
        {"target_modules": ["q_proj", "down_proj"], "lora_dropout": 0.1},
    ],
)
@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_the_weights_are_those_that_peft_merges(tmp_path: Path, kind: Any, options: dict[str, Any]):
    peft: Any = importlib.import_module("peft")
    torch: Any = importlib.import_module("torch")
    write_small(tmp_path / "m.gguf", kind)
    base = open_base(tmp_path / "m.gguf")
    (tmp_path / "small").mkdir()
    write_hub(base, base.weights, tmp_path / "small", stored="float32")
    settings = peft.LoraConfig(
        **{"r": 4, "lora_alpha": 8, "target_modules": list(MODULES), "task_type": "CAUSAL_LM"} | options
    )
    model = peft.get_peft_model(hub_model(tmp_path / "small"), settings)
    torch.manual_seed(0)
    for name, weight in model.named_parameters():
        if ".lora_" in name:
            torch.nn.init.normal_(weight)
    model.save_pretrained(tmp_path / "adapter")
    expected = model.merge_and_unload().state_dict()
    found = merged(base.weights, open_adapter(tmp_path / "adapter"), name=BASE)
    for name in base.weights.shape.tensors():
        assert np.allclose(found.read(name), expected[name].numpy(), atol=1e-4)
    assert not np.allclose(
        found.read("model.layers.1.self_attn.q_proj.weight"),
        base.weights.read("model.layers.1.self_attn.q_proj.weight"),
    )


def test_an_adapter_changes_its_matrices_and_no_others(tmp_path: Path):
    adapter = open_adapter(write_adapter(tmp_path / "adapter", pair()))
    weights = RandomWeights(small_shape())
    found = merged(weights, adapter, name=BASE)
    changed = [name for name in weights.shape.tensors() if not np.array_equal(found.read(name), weights.read(name))]
    assert changed == ["model.layers.0.self_attn.q_proj.weight"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"peft_type": "IA3"}, "of type IA3; Cairn merges only LORA"),
    "dora": ({"use_dora": True}, "says use_dora = True, which Cairn does not merge; merge it with peft"),
    "biased": ({"bias": "all"}, "says bias = all"),
    "modules": ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
    "transposed": ({"fan_in_fan_out": True}, "fan_in_fan_out"),
    "layers": ({"layer_replication": [[0, 2]]}, "layer_replication"),
    "new_option": ({"use_something_new": {"a": 1}}, "use_something_new"),
    "start": ({"init_lora_weights": "pissa"}, "init_lora_weights = pissa"),
    "pattern": ({"alpha_pattern": {"(a+)+$": 3}}, r"alpha_pattern '\(a\+\)\+\$'; names of modules are read there"),
    "patterns": ({"alpha_pattern": [1]}, "alpha_pattern that is not an object"),
    "alpha": ({"lora_alpha": "much"}, "lora_alpha = much, which is not a number"),
    "not_finite": ({"lora_alpha": float("inf")}, "which is not a number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_option_that_is_not_merged_is_refused_in_a_sentence(tmp_path: Path, name: str):
    options, said = REFUSED[name]
    with pytest.raises(CheckpointError, match=said):
        open_adapter(write_adapter(tmp_path / "adapter", pair(), **options))


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({}, "changes nothing"),
        (pair("embed_tokens"), "not one of the two matrices"),
        (pair("layers.0.self_attn.magic_proj"), "magic_proj"),
        ({"base_model.model.lm_head.weight": np.zeros((4, 4), np.float32)}, "lm_head"),
        (dict(list(pair().items())[:1]), r"the two matrices of model\.layers\.0\.self_attn\.q_proj\.weight do not fit"),
        (pair(rank=0), "do not fit"),
        (pair() | {k: v for k, v in pair(rank=3).items() if "lora_A" in k}, "do not fit"),
    ],
)
def test_tensors_that_are_no_pairs_are_refused_in_a_sentence(tmp_path: Path, tensors: dict[str, Floats], said: str):
    with pytest.raises(CheckpointError, match=said):
        open_adapter(write_adapter(tmp_path / "adapter", tensors))


def test_an_adapter_of_another_model_is_refused_with_the_model_that_it_names(tmp_path: Path):
    weights = RandomWeights(small_shape())
    wide = open_adapter(write_adapter(tmp_path / "wide", pair(inside=128)))
    with pytest.raises(
        CheckpointError, match=r"of 64 x 128, and that of small is 64 x 64; name the model .*\('there/small'"
    ):
        merged(weights, wide, name=BASE)
    deep = open_adapter(write_adapter(tmp_path / "deep", pair("layers.7.self_attn.q_proj")))
    with pytest.raises(
        CheckpointError, match=r"changes model\.layers\.7\..* which small does not have; name the model"
    ):
        merged(weights, deep, name=BASE)


def test_another_name_is_a_warning_alone_where_the_shapes_fit(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    weights = RandomWeights(small_shape())
    with caplog.at_level(logging.WARNING):
        merged(weights, open_adapter(write_adapter(tmp_path / "a", pair())), name="ORG/Small")
        assert not caplog.records
        merged(weights, open_adapter(write_adapter(tmp_path / "a", pair())), name="large")
    assert [record.getMessage() for record in caplog.records] == [
        f"the adapter in {tmp_path / 'a'} says that it is of 'there/small'; it is merged into large"
    ]


@pytest.mark.parametrize("content", [None, "", "{", "[]", "[" * 100_000])
def test_a_folder_that_is_no_adapter_is_an_error(tmp_path: Path, content: str | None):
    write_adapter(tmp_path, pair())
    (tmp_path / CONFIG).unlink()
    if content is not None:
        (tmp_path / CONFIG).write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"adapter_config\.json .*name the folder of an adapter that peft saved"):
        open_adapter(tmp_path)


def test_missing_or_cut_off_weights_are_an_error(tmp_path: Path):
    write_adapter(tmp_path, pair())
    (tmp_path / WEIGHTS).write_bytes((tmp_path / WEIGHTS).read_bytes()[:-8])
    with pytest.raises(CheckpointError, match="is not within it"):
        open_adapter(tmp_path)
    (tmp_path / WEIGHTS).unlink()
    with pytest.raises(CheckpointError, match=r"adapter_model\.safetensors cannot be read"):
        open_adapter(tmp_path)


def test_the_hash_is_that_of_both_files(tmp_path: Path):
    first = open_adapter(write_adapter(tmp_path / "a", pair())).sha256
    assert first == open_adapter(write_adapter(tmp_path / "b", pair())).sha256
    assert first != open_adapter(write_adapter(tmp_path / "c", pair(), lora_alpha=9)).sha256
    assert first != open_adapter(write_adapter(tmp_path / "d", pair(rank=5))).sha256
