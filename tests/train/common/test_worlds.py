"""A recipe may draw each world's difficulty from ranges; keys of earlier recipes are refused in a sentence."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agent.errors import SetupError
from agent.world.difficulty import Difficulty
from train.common.recipe import SftData, read_recipe
from train.common.worlds import drawn_from
from train.rl.recipe import RlData

RECIPE = Path("train/recipes/tiny_v2_last.toml")


def data(**more: Any) -> SftData:
    said = {"people": 60, "questions_per_world": 10, "worlds_per_pool": 1, "max_tokens": 2000}
    return SftData.model_validate(said | more)


def test_each_world_draws_its_own_difficulty_inside_of_the_ranges_and_the_same_seed_the_same():
    ours = data(difficulty={"noise": (0.2, 0.7), "paraphrase": (0.3, 0.8)})
    drawn = [drawn_from(ours.difficulty, seed) for seed in range(50)]
    assert drawn == [drawn_from(ours.difficulty, seed) for seed in range(50)]
    assert all(0.2 <= one.noise <= 0.7 and 0.3 <= one.paraphrase <= 0.8 for one in drawn)
    assert len({one.noise for one in drawn}) > 40
    assert {one.staleness for one in drawn} == {Difficulty().staleness}


def test_the_difficulty_reaches_the_world():
    plain, noisy = (ours.world(5, questions=10) for ours in (data(), data(difficulty={"noise": (1, 1)})))
    assert plain.documents != noisy.documents


def test_the_last_stage_of_the_shipped_checkpoint_draws_every_share_that_a_test_list_sets():
    drawn = set(read_recipe(RECIPE).data.difficulty)
    assert drawn == set(Difficulty.model_fields) - {"hops", "unanswerable", "well_known"}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"difficulty": {"nois": (0, 1)}}, "'nois' is not a difficulty; choose from: noise, "),
        ({"difficulty": {"hops": (1, 3)}}, "'hops' is not a difficulty"),
        ({"difficulty": {"noise": (0.5, 0.2)}}, "the range of 'noise' ends below its beginning"),
        ({"difficulty": {"noise": (0.5, 1.2)}}, "less than or equal to 1"),
        ({"generator": 1}, "generator 1 was retired: leave `generator` out"),
        ({"generator": 3}, "Input should be 2"),
        ({"knobs": {"noise": (0, 1)}}, "`knobs` is called `difficulty` now: rename it"),
        ({"poor_share": 0.5}, "`poor_share` is called `noisy_share` now: rename it"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_do(more: dict[str, Any], why: str):
    with pytest.raises(ValidationError, match=why):
        data(**more)
    with pytest.raises(ValidationError, match=why):
        RlData.model_validate(more)


def test_a_recipe_of_before_may_name_the_generator_that_there_is():
    assert data(generator=2) == data()


def test_a_question_list_has_no_difficulty():
    with pytest.raises(ValidationError, match="`difficulty` is for little worlds"):
        RlData.model_validate({"difficulty": {"noise": (0, 1)}, "questions": "questions.jsonl"})


def test_a_world_too_small_for_its_questions_names_the_keys():
    with pytest.raises(
        SetupError, match=r"too small for 5000 questions.*raise `people` or lower `questions_per_world`"
    ):
        data(people=30).world(1, questions=5000)
