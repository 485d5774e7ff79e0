"""What a model says of itself: the same from both forms, and a sentence for what is not converted."""

import json
from pathlib import Path
from typing import Any

import gguf
import pytest

from agent.errors import CheckpointError
from agent.models.base import open_base
from agent.models.gguf_file import open_gguf
from agent.models.shape import CLASSES, Kind, config_of, gguf_name, shape_of_config, shape_of_gguf
from agent.models.weights import gguf_weights, hub_weights
from tests.agent.models.case import KINDS, small_shape, write_small


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
def test_a_gguf_and_a_config_say_the_same(tmp_path: Path, kind: Kind, tied: bool):
    write_small(tmp_path / "m.gguf", kind, tied=tied)
    found = shape_of_gguf(open_gguf(tmp_path / "m.gguf"))
    assert found.epsilon == pytest.approx(1e-6)  # a GGUF has it in float32
    assert shape_of_config(config_of(found), "here") == found
    assert config_of(found)["architectures"] == [CLASSES[kind]]


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_tensors_are_those_of_llama_cpp(kind: Kind):
    arch = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}[kind]
    names = gguf.get_tensor_name_map(arch, 2)
    for name in small_shape(kind, tied=False).tensors():
        assert gguf_name(name) == names.get_name(name, try_suffixes=(".weight", ".bias"))


def test_linear_scaling_of_positions_is_kept(tmp_path: Path):
    write_small(tmp_path / "m.gguf", llama__rope__scaling__type="linear", llama__rope__scaling__factor=4.0)
    found = shape_of_gguf(open_gguf(tmp_path / "m.gguf"))
    assert found.rope_factor == 4.0
    assert shape_of_config(config_of(found), "here") == found


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another_kind": ({"general__architecture": "gemma3"}, "of the kind 'gemma3'; Cairn converts llama"),
    "scaled": ({"llama__rope__scaling__type": "yarn"}, r"scales its positions .*'yarn'"),
    "partial": ({"llama__rope__dimension_count": 8}, "only a part of each head"),
    "text": ({"llama__block_count": "two"}, r"llama\.block_count is not a number"),
    "none": ({"llama__block_count": None}, "block_count is None, and must be a whole number"),
    "zero": ({"llama__attention__head_count": 0}, "head_count is 0"),
    "fraction": ({"llama__block_count": 2.5}, "block_count is 2.5"),
    "many": ({"llama__block_count": 5_000}, "claims 5,000 layers"),
    "more": ({"llama__block_count": 3}, r"lacks blk\.2\.attn_q\.weight, .* and 4 more"),
    "fewer": ({"llama__block_count": 1}, r"has tensors that its kind of model does not \(blk\.1\.attn_q"),
    "wide": ({"llama__feed_forward_length": 128}, r"ffn_gate\.weight has the shape \(128, 64\), and it has \(96, 64\)"),
    "heads": ({"llama__attention__head_count_kv": 3}, "which is impossible"),
    "epsilon": ({"llama__attention__layer_norm_rms_epsilon": -1.0}, "must be a number above 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_gguf_that_is_not_converted_is_refused_in_a_sentence(tmp_path: Path, name: str):
    values, said = REFUSED[name]
    write_small(tmp_path / "m.gguf", **{key: value for key, value in values.items() if key != "general__architecture"})
    if "general__architecture" in values:
        content = (tmp_path / "m.gguf").read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama", b"\x06\0\0\0\0\0\0\0gemma3", 1)
        (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(CheckpointError, match=said):
        gguf_weights(open_gguf(tmp_path / "m.gguf"))


REFUSED_CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "another_kind": ({"model_type": "gemma3_text"}, "of the kind 'gemma3_text'"),
    "biased": ({"attention_bias": True}, "attention_bias = True, which is not converted"),
    "activation": ({"hidden_act": "gelu"}, "hidden_act = gelu"),
    "window": ({"layer_types": ["full_attention", "sliding_attention"]}, "not of full attention"),
    "quantized": ({"quantization_config": {"quant_method": "awq"}}, "quantization_config"),
    "scaled": ({"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, "'llama3'"),
    "text": ({"hidden_size": "wide"}, "hidden_size is wide"),
    "heads": ({"num_attention_heads": 10**9}, "must be a whole number from 1"),
}


@pytest.mark.parametrize("name", REFUSED_CONFIGS)
def test_a_config_that_is_not_converted_is_refused_in_a_sentence(name: str):
    values, said = REFUSED_CONFIGS[name]
    with pytest.raises(CheckpointError, match=said):
        shape_of_config(config_of(small_shape()) | values, "config.json")


@pytest.mark.parametrize("content", ["", "[]", "[" * 100_000, '{"model_type": "llama"}'])
def test_a_config_that_is_none_is_an_error(tmp_path: Path, content: str):
    (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"config\.json"):
        hub_weights(tmp_path)


def test_weights_of_several_files_are_one_model(tmp_path: Path):
    from agent.models.safetensors_file import write_safetensors

    weights = write_small(tmp_path / "m.gguf", "qwen2")
    names = list(weights.shape.tensors())
    for number, part in enumerate((names[:5], names[5:])):
        shapes = {name: weights.shape.tensors()[name] for name in part}
        tensors = ((name, weights.read(name)) for name in part)
        write_safetensors(tmp_path / f"model-{number}.safetensors", tensors, shapes, stored="float32")
    (tmp_path / "config.json").write_text(json.dumps(config_of(weights.shape)), encoding="utf-8")
    read = hub_weights(tmp_path)
    assert all((read.read(name) == weights.read(name)).all() for name in names)
    (tmp_path / "model-0.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"lacks model\.embed_tokens\.weight"):
        hub_weights(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_that_llama_cpp_turns_are_turned_back(tmp_path: Path, kind: Kind):
    weights = write_small(tmp_path / "m.gguf", kind)
    read = open_base(tmp_path / "m.gguf").weights
    assert all((read.read(name) == weights.read(name)).all() for name in weights.shape.tensors())
