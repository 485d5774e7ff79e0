from pathlib import Path

import pytest

pytest.importorskip("torch")

from train.ppo.recipe import read_ppo_recipe

pytestmark = pytest.mark.train

RECIPES = Path(__file__).parents[3] / "train" / "recipes"


def test_the_miniature_recipe_can_be_read_and_asks_each_question_once() -> None:
    recipe = read_ppo_recipe(RECIPES / "tiny_ppo.toml")
    assert recipe.rollout.group == 1
    assert recipe.learning.level == "token"
    assert recipe.learning.kl_weight(0.5) == 0.001
