"""What a trainer begins with: the model of a recipe's start, its tokenizer, and the vLLM server that it joins."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AutoTokenizer

from agent.errors import SetupError
from train.models.pretrained import Pretrained, open_pretrained
from train.rl.recipe import RlRecipe


def opened(recipe: RlRecipe) -> tuple[Pretrained, Any]:
    """The model in float32, with its adapter where the recipe has one, and its tokenizer."""
    begun = open_pretrained(recipe.start, adapter=recipe.adapter, bf16=False)
    try:
        tokenizer = AutoTokenizer.from_pretrained(begun.folder, padding_side="left", trust_remote_code=False)
    except Exception as error:  # readers of tokenizers have errors of their own, with no base in common
        raise SetupError(f"the tokenizer of {recipe.start} cannot be loaded: {error}") from error
    tokenizer.eos_token = tokenizer.eos_token or begun.end
    return begun, tokenizer


@contextmanager
def joined_server(recipe: RlRecipe) -> Generator[None]:
    """Turn what keeps TRL from joining the recipe's vLLM server into a sentence; before anything is loaded, if it can.

    Raises:
        SetupError: there is no GPU, vLLM is not installed here, or the server cannot be reached or takes no weights.
    """
    rollout = recipe.rollout
    if rollout.engine != "vllm-server":
        yield
        return
    if not torch.cuda.is_available():
        raise SetupError(
            "the engine 'vllm-server' needs a GPU: weights go to the server over NCCL; take 'vllm', 'transformers' or "
            "'embedded' on a CPU"
        )
    try:
        yield
    except ImportError as error:
        raise SetupError(f"the engine 'vllm-server' needs vLLM beside TRL ({error}); see docs/scaling.md") from error
    except (OSError, RuntimeError) as error:  # requests' are OSErrors; TRL says in a RuntimeError what is missing
        raise SetupError(f"the vLLM server at {rollout.server} cannot be joined: {error}") from error


def refuse_shares(recipe: RlRecipe) -> None:
    """Refuse what needs the whole model in each process, where every one holds a share of it.

    Raises:
        SetupError: the recipe asks for it.
    """
    whole = "launch without FSDP and without DeepSpeed's third stage"
    if recipe.rollout.engine != "vllm-server":
        raise SetupError(
            f"every process holds a share of the weights, and the engine {recipe.rollout.engine!r} needs them whole: "
            f"take the engine 'vllm-server', or {whole}"
        )
    if recipe.adapter is not None:
        raise SetupError(
            f"an adapter is trained where each process holds the whole model: leave out [adapter], or {whole}"
        )
    if recipe.learning.credit is not None and recipe.learning.credit.information_gain is not None:
        raise SetupError(
            f"information gain is computed where each process holds the whole model: leave it out, or {whole}"
        )
