"""The numbers of a decoder that Cairn converts: as a GGUF says them, as a config.json does, and the tensors they imply.

Llama (SmolLM2 among them), Qwen2 and Qwen3: rotary positions, RMS norms, a gated SwiGLU, grouped queries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from agent.errors import CheckpointError
from agent.models.gguf_file import GgufFile

Kind = Literal["llama", "qwen2", "qwen3"]
KINDS: Final[tuple[Kind, ...]] = ("llama", "qwen2", "qwen3")
CLASSES: Final[Mapping[Kind, str]] = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
SUPPORTED: Final = "Cairn converts llama (SmolLM2 among them), qwen2 and qwen3"
_MOST: Final = 1 << 24
"""Of any of the counts: far beyond every model, and small enough to multiply."""

_MOST_LAYERS: Final = 1_000

LINEAR: Final = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""The matrices of a layer: the hub's name of each → llama.cpp's."""
_NORMS: Final = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
_HEAD_NORMS: Final = {"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
_BIASED: Final = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
EMBEDDINGS: Final = "model.embed_tokens.weight"
LAST_NORM: Final = "model.norm.weight"
HEAD: Final = "lm_head.weight"
_OUTSIDE: Final = {EMBEDDINGS: "token_embd.weight", LAST_NORM: "output_norm.weight", HEAD: "output.weight"}


@dataclass(frozen=True)
class DecoderShape:
    """Of one decoder."""

    kind: Kind
    layers: int
    width: int
    inner: int
    """Width of the feed-forward part."""
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    """Rows of the embeddings; a tokenizer may have fewer tokens."""
    context: int
    rope_base: float
    rope_factor: float
    """By which positions are divided; 1.0 leaves them as they are."""
    epsilon: float
    tied: bool
    """Whether the embeddings are the output's matrix, too."""

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Every tensor: the hub's name → its shape."""
        of_linear = {
            "self_attn.q_proj": (self.heads * self.head_width, self.width),
            "self_attn.k_proj": (self.kv_heads * self.head_width, self.width),
            "self_attn.v_proj": (self.kv_heads * self.head_width, self.width),
            "self_attn.o_proj": (self.width, self.heads * self.head_width),
            "mlp.gate_proj": (self.inner, self.width),
            "mlp.up_proj": (self.inner, self.width),
            "mlp.down_proj": (self.width, self.inner),
        }
        of_layer: dict[str, tuple[int, ...]] = {f"{name}.weight": shape for name, shape in of_linear.items()}
        of_layer |= {f"{name}.weight": (self.width,) for name in _NORMS}
        if self.kind == "qwen2":
            of_layer |= {f"{name}.bias": of_linear[name][:1] for name in _BIASED}
        if self.kind == "qwen3":
            of_layer |= {f"{name}.weight": (self.head_width,) for name in _HEAD_NORMS}
        found: dict[str, tuple[int, ...]] = {EMBEDDINGS: (self.vocabulary, self.width)}
        for layer in range(self.layers):
            found |= {f"model.layers.{layer}.{name}": shape for name, shape in of_layer.items()}
        found[LAST_NORM] = (self.width,)
        return found if self.tied else found | {HEAD: (self.vocabulary, self.width)}


def gguf_name(name: str) -> str:
    """llama.cpp's name of a tensor that the hub calls `name`."""
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    _, _, layer, part = name.split(".", 3)
    module, _, what = part.rpartition(".")
    return f"blk.{layer}.{(LINEAR | _NORMS | _HEAD_NORMS)[module]}.{what}"


def shape_of_gguf(file: GgufFile) -> DecoderShape:
    """What a GGUF says of its model.

    Raises:
        CheckpointError: it is of another kind, or says something that no such model has.
    """
    kind = file.text("general.architecture")
    if kind not in KINDS:
        raise CheckpointError(f"{file.path} is a model of the kind {(kind or '')[:60]!r}; {SUPPORTED}")
    scaling = file.text(f"{kind}.rope.scaling.type") or "none"
    if scaling not in {"none", "linear"} or "rope_freqs.weight" in file.tensors:
        raise CheckpointError(
            f"{file.path} scales its positions in a way that is not converted ({scaling[:60]!r}); take a model without "
            "rope scaling, or with the linear one"
        )

    def count(key: str, default: int | None = None) -> int:
        value = file.number(f"{kind}.{key}")
        return _count(default if value is None else value, f"{file.path}: {kind}.{key}")

    def real(key: str, default: float | None = None) -> float:
        value = file.number(f"{kind}.{key}")
        return _real(default if value is None else value, f"{file.path}: {kind}.{key}")

    heads, width = count("attention.head_count"), count("embedding_length")
    head_width = count("attention.key_length", width // heads)
    if (
        count("rope.dimension_count", head_width) != head_width
        or count("attention.value_length", head_width) != head_width
    ):
        raise CheckpointError(
            f"{file.path} turns only a part of each head by its position; {SUPPORTED} as they are published"
        )
    embeddings = file.tensors.get(_OUTSIDE[EMBEDDINGS])
    if embeddings is None:
        raise file.wrong(f"it has no tensor {_OUTSIDE[EMBEDDINGS]}")
    found = DecoderShape(
        kind=kind,
        layers=_layers(count("block_count"), str(file.path)),
        width=width,
        inner=count("feed_forward_length"),
        heads=heads,
        kv_heads=count("attention.head_count_kv", heads),
        head_width=head_width,
        vocabulary=embeddings.shape[0],
        context=count("context_length"),
        rope_base=real("rope.freq_base", 10_000.0),
        rope_factor=real("rope.scaling.factor", 1.0) if scaling == "linear" else 1.0,
        epsilon=real("attention.layer_norm_rms_epsilon"),
        tied=_OUTSIDE[HEAD] not in file.tensors,
    )
    return _possible(found, str(file.path))


def shape_of_config(config: Mapping[str, Any], where: str) -> DecoderShape:
    """What a config.json of the hub's form says of its model.

    Args:
        config: the object in the file.
        where: the file, for errors.

    Raises:
        CheckpointError: it is of another kind, or says something that no such model has.
    """
    kind = config.get("model_type")
    if kind not in KINDS:
        raise CheckpointError(f"{where} is of a model of the kind {str(kind)[:60]!r}; {SUPPORTED}")
    _refuse_variants(config, where)
    said: Any = config.get("rope_parameters") or config.get("rope_scaling")
    rope = cast(dict[str, Any], said) if isinstance(said, dict) else {}
    rope_type = rope.get("rope_type") or rope.get("type") or "default"
    if rope_type not in {"default", "linear"}:
        raise CheckpointError(
            f"{where} scales its positions in a way that is not converted ({str(rope_type)[:60]!r}); take a model "
            "without rope scaling, or with the linear one"
        )

    def count(key: str, default: int | None = None) -> int:
        value = config.get(key)
        return _count(default if value is None else value, f"{where}: {key}")

    heads, width = count("num_attention_heads"), count("hidden_size")
    base = rope.get("rope_theta") or config.get("rope_theta") or 10_000.0
    found = DecoderShape(
        kind=kind,
        layers=_layers(count("num_hidden_layers"), where),
        width=width,
        inner=count("intermediate_size"),
        heads=heads,
        kv_heads=count("num_key_value_heads", heads),
        head_width=count("head_dim", width // heads),
        vocabulary=count("vocab_size"),
        context=count("max_position_embeddings"),
        rope_base=_real(base, f"{where}: rope_theta"),
        rope_factor=_real(rope.get("factor", 1.0), f"{where}: factor") if rope_type == "linear" else 1.0,
        epsilon=_real(config.get("rms_norm_eps", 1e-6), f"{where}: rms_norm_eps"),
        tied=bool(config.get("tie_word_embeddings", False)),
    )
    return _possible(found, where)


def config_of(shape: DecoderShape) -> dict[str, Any]:
    """The config.json of a decoder, but for what its tokenizer decides."""
    scaled = shape.rope_factor != 1.0
    rope = {"rope_theta": shape.rope_base, "rope_type": "linear" if scaled else "default"}
    config: dict[str, Any] = {
        "architectures": [CLASSES[shape.kind]],
        "model_type": shape.kind,
        "attention_dropout": 0.0,
        "head_dim": shape.head_width,
        "hidden_act": "silu",
        "hidden_size": shape.width,
        "initializer_range": 0.02,
        "intermediate_size": shape.inner,
        "max_position_embeddings": shape.context,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": shape.epsilon,
        "rope_parameters": rope | ({"factor": shape.rope_factor} if scaled else {}),
        "rope_theta": shape.rope_base,
        "tie_word_embeddings": shape.tied,
        "use_cache": True,
        "vocab_size": shape.vocabulary,
    }
    own: dict[Kind, dict[str, Any]] = {
        "llama": {"attention_bias": False, "mlp_bias": False},
        "qwen2": {"use_sliding_window": False},
        "qwen3": {"attention_bias": False, "use_sliding_window": False},
    }
    return config | own[shape.kind]


_PLAIN: Final[Mapping[str, tuple[object, ...]]] = {
    "hidden_act": ("silu", None),
    "attention_bias": (False, None),
    "mlp_bias": (False, None),
    "use_sliding_window": (False, None),
    "quantization_config": (None,),
    "partial_rotary_factor": (1, None),
}
"""What a config.json must not say otherwise."""


def _refuse_variants(config: Mapping[str, Any], where: str) -> None:
    for key, plain in _PLAIN.items():
        if config.get(key) not in plain:
            raise CheckpointError(f"{where} says {key} = {str(config[key])[:60]}, which is not converted; {SUPPORTED}")
    kinds = set(cast(list[object], config.get("layer_types") or []))
    if kinds - {"full_attention"}:
        raise CheckpointError(
            f"{where} names layers that are not of full attention, which are not converted; {SUPPORTED}"
        )


def _possible(shape: DecoderShape, where: str) -> DecoderShape:
    if shape.heads % shape.kv_heads or shape.head_width % 2:
        raise CheckpointError(
            f"{where} says {shape.heads} heads of {shape.head_width} numbers, {shape.kv_heads} of them for keys, "
            "which is impossible; copy or download it again"
        )
    return shape


def _layers(value: int, where: str) -> int:
    if value > _MOST_LAYERS:
        raise CheckpointError(f"{where} claims {value:,} layers, and at most {_MOST_LAYERS:,} are converted")
    return value


def _count(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
        raise CheckpointError(f"{what} is {str(value)[:60]}, and must be a whole number from 1 to {_MOST:,}")
    return value


def _real(value: object, what: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e12:
        raise CheckpointError(f"{what} is {str(value)[:60]}, and must be a number above 0")
    return float(value)
