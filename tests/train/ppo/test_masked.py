"""What breaks outside of the policy is not learned from, and nothing else changes by it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.train.ppo import tiny  # noqa: E402 - only where torch is
from tests.train.ppo.test_learner import E, P, same, weights  # noqa: E402
from tests.train.rl.failing import fallen, rollouts_twice  # noqa: E402
from tests.train.rl.small import hot_checkpoint, recipe  # noqa: E402
from train.ppo.rows import PpoRows, rows_of  # noqa: E402
from train.rl.batch import rollout_reward, totals  # noqa: E402
from train.rl.rollouts import RolloutResult  # noqa: E402

transformers: Any = pytest.importorskip("transformers")

pytestmark = pytest.mark.train


def test_failed_searches_of_some_rollouts_change_nothing_for_the_others(tmp_path: Path) -> None:
    small = recipe(start=str(hot_checkpoint(tmp_path / "hub")), rollout={"group": 5})
    well, ill = rollouts_twice(small, transformers.Qwen3ForCausalLM.from_pretrained(small.start, dtype=torch.float32))
    masked = fallen(well, ill)

    def learned(results: Sequence[RolloutResult]) -> PpoRows:
        rewards = [rollout_reward(one, small.learning) for one in results]
        return rows_of([one.samples for one in results], totals(rewards, {}))

    ours, theirs = learned(ill), learned([one for at, one in enumerate(well) if at not in masked])
    assert ours.lengths == theirs.lengths
    for name in ("ids", "mask", "sampled", "rewards"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))


def test_a_masked_rollout_moves_no_weight_of_policy_or_critic() -> None:
    samples = [
        [tiny.sample([1, 2, 3, 4, 5, 6], [E, P, E, E, P, P])],
        [tiny.sample([1, 7, 8], [E, P, P]), tiny.sample([1, 7, 9, 9, 4], [E, E, E, P, P])],
        [tiny.sample([1, 3, 3, 3], [E, E, P, P])],
    ]
    with_it, without = tiny.learner(tiny.recipe()), tiny.learner(tiny.recipe())
    figures = with_it.learn(rows_of(samples, [1.0, None, 0.5]), progress=0.0, seed=1)
    assert figures == without.learn(rows_of([samples[0], samples[2]], [1.0, 0.5]), progress=0.0, seed=1)
    assert same(weights(with_it), weights(without))
