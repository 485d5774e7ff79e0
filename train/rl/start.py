"""What a trainer begins with: the model of a recipe's start, and its tokenizer."""

from typing import Any

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
