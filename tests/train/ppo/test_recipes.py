from pathlib import Path

import pytest

pytest.importorskip("torch")

from train.ppo.recipe import read_ppo_recipe
from train.rl.recipe import read_rl_recipe

pytestmark = pytest.mark.train

RECIPES = Path(__file__).parents[3] / "train" / "recipes"


def test_the_miniature_asks_as_much_as_that_of_grpo_with_the_same_questions_and_reward() -> None:
    recipe = read_ppo_recipe(RECIPES / "tiny_ppo.toml")
    assert recipe.rollout.group == 1
    assert recipe.learning.level == "token"
    grpo = read_rl_recipe(RECIPES / "tiny_grpo.toml")
    assert recipe.rollout.prompts == grpo.rollout.prompts * grpo.rollout.group
    assert (recipe.data, recipe.curriculum, recipe.reward) == (grpo.data, grpo.curriculum, grpo.reward)
