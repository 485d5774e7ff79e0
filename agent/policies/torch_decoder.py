"""What follows some tokens: by the model itself, or by its arithmetic in fewer calls where those take much of the time.

A small model on a CPU computes a token for some rows in milliseconds, and its `forward` asks Python for a thousand
things meanwhile, for which the workers of an engine wait in turn. Llama, Qwen 2 and Qwen 3 have one shape, so their
layers are gone through here, with the model's own modules and weights. Any other model is called as it is.
"""

import inspect
from typing import Any, Final, Protocol

import torch
from torch import Tensor
from torch.nn import functional

SHAPES: Final = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
"""Models whose layers are gone through here."""
SMALL: Final = 100_000_000
"""Parameters below which, on a CPU, calls take much of a token's time, and a second thread brings nothing."""


class Forward(Protocol):
    """Gives what follows the last token of each row."""

    def __call__(self, ids: Tensor, positions: Tensor, mask: Tensor | None, cache: Any) -> Tensor:
        """Read tokens, either one of each row or some of one row.

        Args:
            ids: [rows, tokens].
            positions: of the tokens in their contexts, [rows, tokens].
            mask: 1 where a column of the cache, or the token itself, belongs to the row, [rows, columns + 1]; None:
                everything does.
            cache: of transformers; keys and values of the tokens are added to it.

        Returns:
            Logits in float32, [rows, vocabulary].
        """
        ...


def forward_of(model: Any) -> Forward:
    """The faster way through a model that lies where it will be used."""
    weight = next(model.parameters())
    layers = getattr(model.config, "layer_types", None) or ()
    known = type(model).__name__ in SHAPES and all(kind == "full_attention" for kind in layers)
    if known and model.num_parameters() < SMALL and (weight.device.type, weight.dtype) == ("cpu", torch.float32):
        return Decoder(model)
    return Whole(model)


class Whole:
    """Any model, called as transformers has it."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._cache = cache_argument(model)

    def __call__(self, ids: Tensor, positions: Tensor, mask: Tensor | None, cache: Any) -> Tensor:
        out = self._model(
            input_ids=ids,
            position_ids=positions,
            attention_mask=mask,
            use_cache=True,
            logits_to_keep=1,
            **{self._cache: cache},
        )
        return out.logits[:, -1].float()


def cache_argument(model: Any) -> str:
    """The name of the argument that takes a cache: `cache`, before transformers 5.24 `past_key_values`."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


class Decoder:
    """A model of one of the `SHAPES` in float32, without dropout: layers of attention and of a gated MLP."""

    def __init__(self, model: Any) -> None:
        self._body = model.model
        self._head = model.lm_head
        self._layers = list(model.model.layers)
        heads = model.config.num_attention_heads
        self._group: int = heads // model.config.num_key_value_heads
        """Heads that look at the same keys and values."""

    def __call__(self, ids: Tensor, positions: Tensor, mask: Tensor | None, cache: Any) -> Tensor:
        hidden = self._body.embed_tokens(ids)
        cos, sin = (part[:, None] for part in self._body.rotary_emb(hidden, positions))
        half = sin.shape[-1] // 2
        turn = (cos, torch.cat((-sin[..., :half], sin[..., half:]), -1))
        unseen = self._unseen(positions, mask)
        for number, layer in enumerate(self._layers):
            queries, keys, values = self._heads(layer.self_attn, _normed(layer.input_layernorm, hidden), turn)
            keys, values = cache.update(keys, values, number)
            seen = self._attended(layer.self_attn, queries, keys, values, unseen)
            hidden = hidden + layer.self_attn.o_proj(seen)
            hidden = hidden + layer.mlp(_normed(layer.post_attention_layernorm, hidden))
        return self._head(_normed(self._body.norm, hidden[:, -1]))

    def _unseen(self, positions: Tensor, mask: Tensor | None) -> Tensor | None:
        """What is added to the attention: -inf where a token does not look, [rows, 1, tokens of a group, columns]."""
        if mask is not None:
            hidden = mask[:, None, None] == 0
        elif positions.shape[1] > 1:
            columns = torch.arange(int(positions[0, -1]) + 1, device=positions.device)
            hidden = (columns > positions[0, :, None]).repeat(self._group, 1)[None, None]
        else:
            return None
        return torch.zeros(hidden.shape, device=positions.device).masked_fill_(hidden, float("-inf"))

    @staticmethod
    def _heads(attention: Any, normed: Tensor, turn: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys at their positions, and values: [rows, heads, tokens, width] each."""
        shape = (*normed.shape[:2], -1, attention.head_dim)
        queries, keys = attention.q_proj(normed).view(shape), attention.k_proj(normed).view(shape)
        if hasattr(attention, "q_norm"):
            queries, keys = _normed(attention.q_norm, queries), _normed(attention.k_norm, keys)
        both = torch.cat((queries, keys), 2).transpose(1, 2)
        cos, sin = turn
        both = torch.addcmul(both * cos, both.roll(cos.shape[-1] // 2, -1), sin)
        count = queries.shape[2]
        return both[:, :count], both[:, count:], attention.v_proj(normed).view(shape).transpose(1, 2)

    def _attended(self, attention: Any, queries: Tensor, keys: Tensor, values: Tensor, unseen: Tensor | None) -> Tensor:
        """What each token sees, [rows, tokens, width of all heads].

        The heads of a group stand beside each other as tokens do, so keys and values are not repeated for each of them.
        """
        rows, heads, tokens, width = queries.shape
        packed = queries.reshape(rows, heads // self._group, self._group * tokens, width)
        seen = functional.scaled_dot_product_attention(packed, keys, values, unseen, scale=attention.scaling)
        return seen.reshape(rows, heads, tokens, width).transpose(1, 2).reshape(rows, tokens, -1)


def _normed(norm: Any, hidden: Tensor) -> Tensor:
    return functional.rms_norm(hidden, norm.weight.shape, norm.weight, norm.variance_epsilon)
