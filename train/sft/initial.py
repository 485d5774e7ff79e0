"""Initial weights from another checkpoint of the same widths; its vocabulary may be another one, its layers fewer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from tokenizers import Tokenizer
from transformers import Qwen3ForCausalLM

from agent.errors import SetupError


def begin_from(model: Qwen3ForCausalLM, tokenizer: Tokenizer, hub: Path) -> float:
    """Give a model the weights of a checkpoint, and each token the embedding that it has there.

    A token that the checkpoint does not know begins as the mean of the pieces that its text has there. A deeper model
    begins as the same function: each layer that is new follows one that it is like, and adds nothing yet.

    Returns:
        The share of tokens that both have.

    Raises:
        SetupError: there is no checkpoint, or one of another shape.
    """
    try:
        old = cast(Any, Qwen3ForCausalLM).from_pretrained(
            hub, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
        )
        old_tokenizer = Tokenizer.from_file(str(hub / "tokenizer.json"))
    except (OSError, ValueError) as error:
        raise SetupError(f"{hub} cannot be begun from: {error}") from error
    table: torch.Tensor = old.get_input_embeddings().weight.detach()
    try:
        weights = _deepened(_inner(old), old.config.num_hidden_layers, model.config.num_hidden_layers)
        model.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise SetupError(f"{hub} has another shape: {error}") from error
    known = 0
    with torch.no_grad():
        embeddings = cast(torch.Tensor, model.get_input_embeddings().weight)
        for token, number in tokenizer.get_vocab().items():
            same = old_tokenizer.token_to_id(token)
            pieces = [same] if same is not None else _pieces(token, tokenizer, number, old_tokenizer)
            known += same is not None
            if pieces:
                embeddings[number] = table[pieces].mean(0)
    return known / tokenizer.get_vocab_size()


def _inner(model: Any) -> dict[str, torch.Tensor]:
    """All weights but those of the vocabulary."""
    return {name: value for name, value in model.state_dict().items() if "embed" not in name and "lm_head" not in name}


def _deepened(weights: Mapping[str, torch.Tensor], layers: int, wanted: int) -> dict[str, torch.Tensor]:
    """The weights of a model of `wanted` layers that says what the one of `layers` says.

    New layers are spread evenly. Each is a copy of the one before, but for what it adds to the stream (attention's and
    the feed-forward part's last projection), which is 0: the block expansion of LLaMA Pro (Wu et al., 2024).

    Raises:
        RuntimeError: it has more layers than are wanted.
    """
    if layers > wanted:
        raise RuntimeError(f"it has {layers} layers, more than {wanted}")
    sources = [place * layers // wanted for place in range(wanted)]
    made = {name: value for name, value in weights.items() if not name.startswith(_LAYER)}
    for place, source in enumerate(sources):
        is_new = place > 0 and sources[place - 1] == source
        for name, value in weights.items():
            if name.startswith(f"{_LAYER}{source}."):
                part = name.removeprefix(f"{_LAYER}{source}.")
                made[f"{_LAYER}{place}.{part}"] = torch.zeros_like(value) if is_new and part in _ADDS else value
    return made


_LAYER = "model.layers."
_ADDS = ("self_attn.o_proj.weight", "mlp.down_proj.weight")
_LIKE = {"result": "information", "observation": "information", "original_evidence": "evidence", "question": "think"}
"""New tags begin like the tags that do the same elsewhere."""


def _pieces(token: str, tokenizer: Tokenizer, number: int, old: Tokenizer) -> list[int]:
    name = token.strip("</>")
    if token.startswith("<") and name in _LIKE:
        like = old.token_to_id(token.replace(name, _LIKE[name]))
        return [] if like is None else [like]
    return old.encode(tokenizer.decode([number]), add_special_tokens=False).ids
