"""A recipe of generator 2 may draw each world's knobs from ranges."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agent.world.knobs import Knobs
from train.common.difficulty import drawn_from
from train.common.recipe import Data, read_recipe
from train.rl.recipe import Data as RlData
from train.sft.trajectories import data_world

RECIPE = Path("train/recipes/tiny_v2_last.toml")


def data(**more: Any) -> Data:
    said = {"generator": 2, "people": 60, "questions_per_world": 10, "worlds_per_pool": 1, "max_tokens": 2000}
    return Data.model_validate(said | more)


def test_each_world_draws_its_own_knobs_inside_of_the_ranges_and_the_same_seed_the_same():
    ours = data(knobs={"noise": (0.2, 0.7), "paraphrase": (0.3, 0.8)})
    drawn = [drawn_from(ours.knobs, seed) for seed in range(50)]
    assert drawn == [drawn_from(ours.knobs, seed) for seed in range(50)]
    assert all(0.2 <= knobs.noise <= 0.7 and 0.3 <= knobs.paraphrase <= 0.8 for knobs in drawn)
    assert len({knobs.noise for knobs in drawn}) > 40
    assert {knobs.staleness for knobs in drawn} == {Knobs().staleness}


def test_the_knobs_reach_the_world():
    plain, noisy = data_world(data(), 5, questions=10), data_world(data(knobs={"noise": (1, 1)}), 5, questions=10)
    assert plain.documents != noisy.documents


def test_the_last_stage_of_the_second_edition_draws_every_share_that_a_test_list_turns():
    assert set(read_recipe(RECIPE).data.knobs) == set(Knobs.model_fields) - {"hops", "unanswerable", "well_known"}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"knobs": {"nois": (0, 1)}}, "'nois' is no knob that can be drawn; there are: noise, "),
        ({"knobs": {"hops": (1, 3)}}, "'hops' is no knob that can be drawn"),
        ({"knobs": {"noise": (0.5, 0.2)}}, "the range of 'noise' ends below its beginning"),
        ({"knobs": {"noise": (0.5, 1.2)}}, "less than or equal to 1"),
        ({"knobs": {"noise": (0, 1)}, "generator": 1}, "knobs are of worlds of generator 2"),
    ],
)
def test_a_range_that_cannot_be_drawn_from_is_told(more: dict[str, Any], why: str):
    with pytest.raises(ValidationError, match=why):
        data(**more)
    with pytest.raises(ValidationError, match=why):
        RlData.model_validate(more)
