"""From a model to the folder that the embedded engine serves: CTranslate2's form, tokenizer.json and cairn.json.

It does what CTranslate2's own converter does, without torch and with one layer's floats in memory at a time: the same
model in float32 comes out byte for byte the same.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from agent.models.base import Base
from agent.models.shape import EMBEDDINGS, HEAD, LAST_NORM, DecoderShape
from agent.models.tokenizer import TokenizerFiles, tokens_of
from agent.models.weights import ModelWeights
from agent.policies.checkpoint import write_manifest
from agent.policies.model_folder import About

Quantization = Literal["int8", "float32"]
MOST_INT8: Final = 64
"""The largest weight. Without VNNI, a CPU adds two products of an activation (0 to 255) and a weight in 16 bits, where
127, CTranslate2's own choice, overflows: SmolLM2 then picks another token in one place of six."""
Report = Callable[[int, int], None]
"""Gets the layers that are done, and how many there are."""


def write_ct2(
    base: Base,
    weights: ModelWeights,
    out: Path,
    *,
    about: About,
    quantization: Quantization,
    report: Report = lambda _, __: None,
) -> None:
    """Convert a model into a folder that is there and empty.

    Args:
        base: the model, for its tokenizer.
        weights: its own, or with an adapter in them.
        out: the folder.
        about: what its cairn.json says; protocols that are files must be in the folder `base` already.
        quantization: of the matrices.
        report: how far it is.

    Raises:
        CheckpointError: the model cannot be read or converted.
        OSError: the folder cannot be written.
    """
    spec = _spec(weights, base.tokenizer, quantization, report)
    spec.save(str(out))
    (out / "tokenizer.json").write_text(base.tokenizer.json, encoding="utf-8")
    write_manifest(out, about)


def _spec(weights: ModelWeights, tokenizer: TokenizerFiles, quantization: Quantization, report: Report) -> Any:
    shape = weights.shape
    spec = _empty(shape)
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = weights.read(EMBEDDINGS)
    _pack(decoder.embeddings, quantization)
    decoder.layer_norm.gamma = weights.read(LAST_NORM)
    if shape.tied:
        decoder.projection.weight = decoder.embeddings.weight
    else:
        decoder.projection.weight = weights.read(HEAD)
        _pack(decoder.projection, quantization)
    for number, layer in enumerate(decoder.layer):
        report(number, shape.layers)
        _fill(layer, weights, f"model.layers.{number}", quantization)
    report(shape.layers, shape.layers)
    spec.register_vocabulary(tokens_of(tokenizer.json, shape.vocabulary))
    spec.config.bos_token = tokenizer.begin or tokenizer.padding or tokenizer.end
    spec.config.eos_token = tokenizer.end
    spec.config.unk_token = tokenizer.unknown or ""
    spec.config.layer_norm_epsilon = shape.epsilon
    spec.validate()
    spec.optimize()  # one copy of what is there twice; the matrices are packed already
    return spec


def _empty(shape: DecoderShape) -> Any:
    specs: Any = importlib.import_module("ctranslate2.specs")
    common: Any = importlib.import_module("ctranslate2.specs.common_spec")
    attention: Any = importlib.import_module("ctranslate2.specs.attention_spec")
    heads: dict[str, Any] = (
        {"rotary_dim": shape.head_width, "head_dim": shape.head_width, "qk_norm": True}
        if shape.kind == "qwen3"
        else {"rotary_dim": 0}
    )
    if shape.kind != "qwen3" and shape.head_width * shape.heads != shape.width:
        heads = {"rotary_dim": shape.head_width, "head_dim": shape.head_width}
    return specs.TransformerDecoderModelSpec.from_config(
        shape.layers,
        shape.heads,
        activation=common.Activation.SWISH,
        pre_norm=True,
        ffn_glu=True,
        rms_norm=True,
        rotary_interleave=False,
        rotary_scaling_type=attention.RotaryScalingType.Linear if shape.rope_factor != 1.0 else None,
        rotary_scaling_factor=shape.rope_factor,
        rotary_base=shape.rope_base,
        num_heads_kv=None if shape.kv_heads == shape.heads else shape.kv_heads,
        **heads,
    )


def _fill(layer: Any, weights: ModelWeights, prefix: str, quantization: Quantization) -> None:
    attention, feed = layer.self_attention, layer.ffn
    attention.layer_norm.gamma = weights.read(f"{prefix}.input_layernorm.weight")
    feed.layer_norm.gamma = weights.read(f"{prefix}.post_attention_layernorm.weight")
    names = [f"{prefix}.self_attn.{which}_proj" for which in "qkv"]
    attention.linear[0].weight = np.concatenate([weights.read(f"{name}.weight") for name in names])
    if weights.shape.kind == "qwen2":
        attention.linear[0].bias = np.concatenate([weights.read(f"{name}.bias") for name in names])
    if weights.shape.kind == "qwen3":
        attention.q_norm.gamma = weights.read(f"{prefix}.self_attn.q_norm.weight")
        attention.k_norm.gamma = weights.read(f"{prefix}.self_attn.k_norm.weight")
    _pack(attention.linear[0], quantization)
    for part, name in (
        (attention.linear[1], "self_attn.o_proj"),
        (feed.linear_0, "mlp.gate_proj"),
        (feed.linear_0_noact, "mlp.up_proj"),
        (feed.linear_1, "mlp.down_proj"),
    ):
        part.weight = weights.read(f"{prefix}.{name}.weight")
        _pack(part, quantization)


def _pack(part: Any, quantization: Quantization) -> None:
    """Quantize one matrix now, so that the floats of few are in memory at a time."""
    part.weight = np.require(part.weight, np.float32, ["C"])
    part.validate()
    if quantization == "int8":
        to_int8(part)


def to_int8(part: Any) -> None:
    """Quantize the matrix of one part of a specification: each row has a scale, its largest is `MOST_INT8`."""
    weight = part.weight.to("float32").numpy()
    largest = np.abs(weight).max(axis=-1, keepdims=True)
    scale = MOST_INT8 / np.maximum(largest, MOST_INT8 / np.finfo(np.float32).max)
    kept: Any = importlib.import_module("ctranslate2.specs.model_spec").NumpyVariable
    part.weight = kept(np.rint(weight * scale).astype(np.int8))
    part.weight_scale = kept(scale[..., 0].astype(np.float32))


def all_to_int8(spec: Any) -> None:
    """Quantize each matrix of a specification that another converter has filled; all else becomes float32."""
    index_spec: Any = importlib.import_module("ctranslate2.specs.model_spec").index_spec
    for name, value in spec.variables().items():
        scope, _, key = name.rpartition("/")
        part = index_spec(spec, scope)
        if isinstance(value, str):
            continue  # the name of a matrix that is stored once and used twice
        if key == "weight" and hasattr(part, "weight_scale"):
            to_int8(part)
        elif value.dtype in ("float16", "bfloat16"):
            setattr(part, key, value.to("float32"))
