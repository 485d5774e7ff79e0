"""A stage of the curriculum that shows less has fewer rows: what its passages do not state cannot be learned there."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from train.common.recipe import SftRecipe, read_recipe
from train.sft.tokenizer import train_tokenizer
from train.sft.trajectories import tokenizer_texts, world_examples

RECIPE = Path(__file__).parents[3] / "train" / "recipes" / "tiny_sft.toml"


def test_a_stage_that_shows_fewer_passages_leaves_out_what_they_do_not_state() -> None:
    recipe = read_recipe(RECIPE)
    small = {"questions_per_world": 30, "tokenizer_worlds": 1, "max_tokens": 4000}
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update=small)})
    tokenizer = train_tokenizer(tokenizer_texts(recipe), vocabulary=700)

    def made(recipe: SftRecipe) -> int:
        return len(list(world_examples(recipe, tokenizer, world_seed=1, progress=0.0)))

    def showing(passages: int) -> SftRecipe:
        stage = recipe.curriculum[-1].model_copy(update={"passages": passages})
        return recipe.model_copy(update={"curriculum": (stage,)})

    every = made(showing(0))
    assert 27 <= every <= 30
    assert 10 < made(showing(1)) < every
