"""A causal language model of transformers: loaded whole, checked before it is trained, and run for few logits.

What a model computes is tried, so that nothing depends on a list of architectures. Code that a checkpoint brings along
is never run.
"""

from pathlib import Path
from typing import Any, Final, cast

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from agent.errors import SetupError

_PROBE: Final = (3, 5, 7, 11, 13, 17)
"""Ids that a model is looked at with, within every vocabulary."""
_CLOSE: Final = {torch.float32: 1e-4}
"""How far two ways to the same logits may lie apart by rounding, as a share of their deviation; else 1e-2."""


def load_model(folder: Path, *, dtype: torch.dtype) -> PreTrainedModel:
    """The model in a folder, whole.

    Raises:
        SetupError: transformers does not know its kind, or its weights are damaged or not all there.
    """
    logging.disable_progress_bar()  # the terminal belongs to the command
    try:
        model, said = cast(Any, AutoModelForCausalLM).from_pretrained(
            folder,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except Exception as error:  # readers of weights have errors of their own, with no base in common
        why = " ".join(str(error).split())[:300]
        raise SetupError(
            f"{folder} is not a causal language model that transformers loads by itself, or its weights are damaged: "
            f"{why}; name another start"
        ) from error
    if lacking := sorted(said["missing_keys"]):
        raise SetupError(
            f"{folder} lacks weights of its model, {lacking[0]} for one: it is not a causal language model, or it was "
            "not copied whole; name another start"
        )
    return model


@torch.no_grad()
def is_parted(model: PreTrainedModel, folder: Path, *, tokens: int) -> bool:
    """Whether the model's logits are those of its decoder and its head, after a look at what it computes.

    Raises:
        SetupError: it cannot be trained to continue text.
    """
    rows = cast(Any, model.get_input_embeddings()).weight.shape[0]
    if tokens > rows:
        raise SetupError(
            f"the tokenizer in {folder} has {tokens} tokens, and the model embeddings of {rows}: they do not belong "
            "together; copy the folder again"
        )
    ids = torch.tensor([_PROBE, (*_PROBE[:-1], _PROBE[0])])
    cast(Any, model).eval()
    try:
        logits = cast(Any, model)(input_ids=ids, use_cache=False).logits.float()
    except Exception as error:  # a model that wants images, or two texts: each in words of its own
        why = " ".join(str(error).split())[:200]
        raise SetupError(f"the model in {folder} does not continue text alone: {why}; name another start") from error
    close = _CLOSE.get(cast(torch.dtype, model.dtype), 1e-2) * (float(logits.std()) or 1.0)
    if float((logits[0, :-1] - logits[1, :-1]).abs().max()) > close:
        raise SetupError(
            f"the model in {folder} sees the tokens behind each token (an encoder): it cannot be trained to write; "
            "name a causal language model"
        )
    decoder: Any = getattr(model, model.base_model_prefix, None)
    if decoder is None or model.get_output_embeddings() is None:
        return False
    parts = head_of(model, decoder(input_ids=ids, use_cache=False).last_hidden_state).float()
    return parts.shape == logits.shape and float((parts - logits).abs().max()) <= close


def recompute_layers(model: Any) -> None:
    """Have a model of transformers compute each layer again in the backward pass of training.

    Raises:
        ValueError: it cannot.
    """
    named = "activation_checkpointing_enable"  # older transformers know the other name only
    getattr(model, named if hasattr(model, named) else "gradient_checkpointing_enable")({"use_reentrant": False})


def logits_at(model: Any, ids: torch.Tensor, places: torch.Tensor, *, parted: bool) -> torch.Tensor:
    """The logits behind some of the tokens alone, [places, vocabulary].

    Args:
        model: a causal language model.
        ids: [rows, length], padded on the right.
        places: [rows, length], whether the logits behind this token are wanted.
        parted: see `is_parted`.
    """
    states = hidden_of(model, ids, parted=parted)[places]
    return head_of(model, states) if parted else states


def hidden_of(model: Any, ids: torch.Tensor, *, parted: bool) -> torch.Tensor:
    """States in front of the head, [rows, length, width]; where they cannot be had alone, the logits."""
    if not parted:
        return model(input_ids=ids, use_cache=False).logits
    return getattr(model, model.base_model_prefix)(input_ids=ids, use_cache=False).last_hidden_state


def head_of(model: PreTrainedModel, hidden: torch.Tensor) -> torch.Tensor:
    """From hidden states [tokens, width] to logits [tokens, vocabulary], with the model's own cap on them."""
    head = cast(torch.nn.Module, model.get_output_embeddings())
    logits = cast(torch.Tensor, head(hidden))
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    return torch.tanh(logits / cap) * cap if cap else logits
