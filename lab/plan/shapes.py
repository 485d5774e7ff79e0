"""Shapes of language models, and how many weights they have: from a checkpoint's `config.json`, or known by name.

No weight is read and nothing is downloaded.
"""

import json
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.errors import SetupError
from agent.files.foreign import MIB, read_text


class Shape(BaseModel):
    """A decoder of the Qwen kind: grouped-query attention, a gated feed-forward part, RMS norms."""

    model_config = ConfigDict(frozen=True)

    width: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    """Whether the output embeddings are the input's."""
    attention_bias: bool = False
    """Of queries, keys and values (Qwen2)."""
    head_norms: bool = False
    """Of queries and keys (Qwen3)."""

    @property
    def layer_parameters(self) -> int:
        """Weights of one layer."""
        own, shared = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = self.width * (own + 2 * shared) + own * self.width
        bias = own + 2 * shared if self.attention_bias else 0
        norms = 2 * self.width + (2 * self.head_dim if self.head_norms else 0)
        return attention + bias + 3 * self.width * self.inner + norms

    @property
    def embedding_parameters(self) -> int:
        """Weights of the embeddings, of input and output."""
        return self.vocabulary * self.width * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        """All weights."""
        return self.layers * self.layer_parameters + self.embedding_parameters + self.width

    @property
    def cache_bytes(self) -> int:
        """Of one token's keys and values in two bytes each."""
        return 2 * 2 * self.layers * self.kv_heads * self.head_dim


def _qwen2(**shape: Any) -> Shape:
    return Shape(head_dim=128, attention_bias=True, **shape)


def _qwen3(**shape: Any) -> Shape:
    return Shape(head_dim=128, head_norms=True, **shape)


_QWEN25_3B: Final = _qwen2(width=2048, inner=11008, layers=36, heads=16, kv_heads=2, vocabulary=151936, tied=True)
_QWEN25_7B: Final = _qwen2(width=3584, inner=18944, layers=28, heads=28, kv_heads=4, vocabulary=152064, tied=False)
_QWEN25_32B: Final = _qwen2(width=5120, inner=27648, layers=64, heads=40, kv_heads=8, vocabulary=152064, tied=False)
KNOWN: Final[dict[str, Shape]] = {
    "Qwen/Qwen2.5-3B": _QWEN25_3B,
    "Qwen/Qwen2.5-3B-Instruct": _QWEN25_3B,
    "Qwen/Qwen2.5-7B": _QWEN25_7B,
    "Qwen/Qwen2.5-7B-Instruct": _QWEN25_7B,
    "Qwen/Qwen2.5-32B-Instruct": _QWEN25_32B,
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": _QWEN25_7B,
    "Qwen/Qwen3-4B": _qwen3(width=2560, inner=9728, layers=36, heads=32, kv_heads=8, vocabulary=151936, tied=True),
    "Qwen/Qwen3-8B": _qwen3(width=4096, inner=12288, layers=36, heads=32, kv_heads=8, vocabulary=151936, tied=False),
}
"""By the name on the hub: as their public `config.json` says."""


def shape_of(start: str) -> Shape:
    """The shape of a recipe's start.

    Args:
        start: a folder in the hub's form, or a name that is known.

    Raises:
        SetupError: neither; the sentence says what to give.
    """
    if start in KNOWN:
        return KNOWN[start]
    path = Path(start) / "config.json"
    try:
        return _of_config(json.loads(read_text(path, most=MIB)))
    except (OSError, json.JSONDecodeError, KeyError, ValidationError) as error:
        known = ", ".join(KNOWN)
        raise SetupError(
            f"the shape of {start!r} is not known ({path}: {error}); "
            f"give a folder with a config.json of a Qwen2 or Qwen3 model, or one of {known}"
        ) from error


def _of_config(said: dict[str, Any]) -> Shape:
    kind = said.get("model_type", "")
    if kind not in {"qwen2", "qwen3", "llama", "mistral"}:
        raise KeyError(f"model_type {kind!r} has no formula here")
    heads = said["num_attention_heads"]
    return Shape(
        width=said["hidden_size"],
        inner=said["intermediate_size"],
        layers=said["num_hidden_layers"],
        heads=heads,
        kv_heads=said.get("num_key_value_heads", heads),
        head_dim=said.get("head_dim") or said["hidden_size"] // heads,
        vocabulary=said["vocab_size"],
        tied=said.get("tie_word_embeddings", False),
        attention_bias=kind == "qwen2",
        head_norms=kind == "qwen3",
    )
