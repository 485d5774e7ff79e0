"""What breaks outside of the policy is not learned from; tests/train/rl/test_failed_searches.py has such rollouts."""

import pytest

pytest.importorskip("torch")

from tests.train.ppo import tiny
from tests.train.ppo.test_learner import E, P, same, weights
from train.ppo.rows import rows_of

pytestmark = pytest.mark.train


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
