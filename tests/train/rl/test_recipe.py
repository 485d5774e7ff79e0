import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import train
from agent.errors import SetupError
from tests.train.rl.small import recipe
from train.rl.recipe import read_rl_recipe

RECIPES = sorted((Path(train.__file__).parent / "recipes").glob("*.toml"))
OURS = [path for path in RECIPES if 'kind = "rl"' in path.read_text(encoding="utf-8")]


def test_there_is_a_miniature_of_each_algorithm() -> None:
    assert {"tiny_grpo.toml", "tiny_gdpo.toml", "tiny_dapo.toml"} <= {path.name for path in OURS}


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_every_recipe_that_is_shipped_can_be_read(path: Path) -> None:
    made = read_rl_recipe(path, start="somewhere/hub")
    assert made.start == "somewhere/hub"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rollout": {"engine": "telepathy"}}, "rollout.engine"),
        ({"rollout": {"speed": 2}}, "rollout.speed"),
        ({"rollout": {"engine": "vllm-server"}}, "needs it"),
        ({"reward": ({"name": "applause"},)}, "there is no reward 'applause'"),
        ({"reward": ({"name": "outcome", "settings": {"colour": 1}},)}, "colour"),
        ({"reward": ({"name": "outcome", "until": 0.5}, {"name": "outcome", "until": 0.2})}, "in the order"),
        ({"learning": {"kl": ((0.5, 0.1), (0.1, 0.1))}}, "in their order"),
        ({"learning": {"old": "engine"}, "rollout": {"temperature": 0.7}}, "temperature 1"),
        ({"learning": {"overlong": {"longest": 10, "buffer": 20}}}, "does not fit"),
        ({"learning": {"name": "gdpo", "credit": {"first_hit": 0.5}}}, "gdpo normalises each part"),
        ({"learning": {"credit": {"first_hit": 1.0}}}, "learning.credit.first_hit"),
        ({"learning": {"name": "gdpo", "credit": {"information_gain": {}}}}, "gdpo normalises each part"),
        ({"learning": {"credit": {"first_hit": 0.5, "information_gain": {}}}}, "choose one of them"),
        ({"data": {"search": {"corpus": "x"}}}, "name `questions`"),
        ({"data": {"protocol_weights": {"dag": 2.0}}}, "names dag"),
        ({"data": {"protocol_weights": {"multisearch": 0.0}}}, "leaves no protocol to draw"),
        ({"data": {"protocol_weights": {"multisearch": -1.0}}}, "data.protocol_weights.multisearch"),
        ({"curriculum": ({"until": 1.0, "mix": dict[str, float]()},)}, "curriculum.0.mix"),
        ({"curriculum": ({"until": 1.0, "mix": {"chain1": 0.0}},)}, "a weight above 0"),
        ({"curriculum": ({"until": 1.0, "mix": {"chain1": 1.0, "chain2": -0.5}},)}, "curriculum.0.mix.chain2"),
        ({"curriculum": ({"until": 1.0, "mix": {"chain1": math.nan}},)}, "curriculum.0.mix.chain1"),
        ({"learning": {"name": "gdpo", "divide_by_std": False}}, "leave out `divide_by_std`"),
        ({"learning": {"kl": ((0.0, math.nan),)}}, "finite number"),
        ({"optimizer": {"lr": math.inf}}, "optimizer.lr"),
        ({"optimizer": {"warmup_steps": 5, "minibatches": 2}}, "a warm-up of 5 updates does not end in a run of 4"),
        ({"reward": ({"name": "reflect", "settings": {"switch": 250}},)}, "switch"),
        ({"reward": ({"name": "outcome", "weights": {"answer": math.nan}},)}, "reward.0.weights.answer"),
        ({"safety": {"without": ("no such rule",)}}, "no such rule"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        recipe(**change)


def test_a_warm_up_may_last_as_long_as_the_run() -> None:
    assert recipe(optimizer={"warmup_steps": 4, "minibatches": 2}).updates_per_step == 2


def test_an_unknown_key_of_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text('kind = "rl"\nspeed = 3\n', encoding="utf-8")
    with pytest.raises(SetupError, match=r"wrong.toml cannot be used: .*speed: there is no such field"):
        read_rl_recipe(path)


def test_the_weight_of_the_kl_term_goes_along_its_points() -> None:
    learning = recipe(learning={"kl": ((0.0, 0.1), (0.5, 0.02), (1.0, 0.0))}).learning
    assert [round(learning.kl_weight(at), 4) for at in (0, 0.25, 0.5, 0.75, 1)] == [0.1, 0.06, 0.02, 0.01, 0.0]
    assert recipe().learning.kl_weight(0.3) == 0


def test_dapo_clips_higher_averages_tokens_and_samples_again() -> None:
    dapo, grpo = recipe(learning={"name": "dapo"}).learning, recipe().learning
    assert (dapo.high, dapo.level, dapo.resampling) == (0.28, "token", "full")
    assert (grpo.high, grpo.level, grpo.resampling) == (0.2, "sequence", 0)


def test_a_staged_reward_changes_at_its_share_of_the_steps() -> None:
    stages = ({"name": "reflect", "settings": {"stage": 1, "right": "em"}, "until": 0.5}, {"name": "outcome"})
    made = recipe(reward=stages)
    assert [made.reward_stage(at) for at in (0.0, 0.49, 0.5, 1.0)] == [0, 0, 1, 1]
