"""The rollout phase beside plain generation: both ways play the same batch, and searches are timed as they are."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

from tests.train.rl.small import recipe
from train.rl.bench import phases

pytestmark = [pytest.mark.train, pytest.mark.slow]


def test_both_ways_play_the_batch_and_only_the_plain_one_stands_still_for_each_search():
    ours, plain = phases(recipe(), search_ms=[200.0], threads=1)
    assert (ours.way, plain.way) == ("ours", "plain")
    assert ours.rollouts == plain.rollouts == 6
    for phase in (ours, plain):
        assert phase.policy_tokens > 0
        assert 0.2 * phase.searches <= phase.searching < 0.4 * phase.searches
    assert plain.seconds > plain.searching
    assert ours.searching > 6 * 0.2, "each rollout searches"
