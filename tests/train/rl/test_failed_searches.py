"""What breaks outside of the policy is not learned from, and what is learned of the others is the same, by any trainer."""

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

from tests.train.rl.failing import fallen, rollouts_twice  # noqa: E402 - only where torch is
from tests.train.rl.small import hot_checkpoint, recipe  # noqa: E402
from train.ppo.rows import rows_of as ppo_rows  # noqa: E402
from train.rl.batch import rollout_reward, rows_of, totals, turn_advantages  # noqa: E402
from train.rl.recipe import RlRecipe  # noqa: E402
from train.rl.rollouts import RolloutResult  # noqa: E402

pytestmark = [pytest.mark.train, pytest.mark.slow]

Results = Sequence[RolloutResult]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> RlRecipe:
    start = hot_checkpoint(tmp_path_factory.mktemp("hot") / "hub")
    return recipe(start=str(start), rollout={"group": 5})


@pytest.fixture(scope="module")
def results(small: RlRecipe) -> tuple[Results, Results]:
    """Those whose searches failed for some of them, and the others where no search failed."""
    well, ill = rollouts_twice(small, transformers.Qwen3ForCausalLM.from_pretrained(small.start, dtype=torch.float32))
    masked = fallen(well, ill)
    others = [one for at, one in enumerate(well) if at not in masked]
    assert [one.rewarded for at, one in enumerate(ill) if at not in masked] == [one.rewarded for one in others]
    return ill, others


def test_failed_searches_of_some_rollouts_change_nothing_for_the_others(
    small: RlRecipe, results: tuple[Results, Results]
) -> None:
    """Everything that the trainer hears is the same, so that the same rows are the same gradient."""

    def learned(of: Results) -> Any:
        rewards = [rollout_reward(one, small.learning) for one in of]
        return rows_of(of, rewards, turn_advantages(rewards, small.learning, {}), level="sequence", all_rows=True)

    ill, others = results
    assert learned(ill) == learned(others)


def test_they_change_nothing_for_the_others_in_the_rows_of_ppo(
    small: RlRecipe, results: tuple[Results, Results]
) -> None:
    ours, theirs = (
        ppo_rows([one.samples for one in of], totals([rollout_reward(one, small.learning) for one in of], {}))
        for of in results
    )
    assert ours.lengths == theirs.lengths
    for name in ("ids", "mask", "sampled", "rewards"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))
