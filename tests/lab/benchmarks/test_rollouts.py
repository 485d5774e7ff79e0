"""The rollout phase beside plain generation: both ways run the same batch, and only ours overlaps its searches."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

from lab.benchmarks.rollouts import phases
from lab.shipped import HUB
from tests.train.rl.small import recipe
from train.common.recipe import AdapterSettings
from train.models.pretrained import open_pretrained

pytestmark = [pytest.mark.train, pytest.mark.slow]


def test_both_ways_run_the_batch_from_an_adapter_and_only_the_plain_one_waits_for_each_search_in_turn(tmp_path: Path):
    open_pretrained(str(HUB), adapter=AdapterSettings(rank=4, alpha=8), bf16=False).save_adapter(tmp_path)
    ours, plain = phases(recipe(start=str(tmp_path)), search_ms=[1000.0], threads=1)
    assert (ours.way, plain.way) == ("ours", "plain")
    assert ours.rollouts == plain.rollouts == 6
    for phase in (ours, plain):
        assert phase.policy_tokens > 0
        assert phase.searches >= 6, "each rollout searches"
        assert phase.searching >= 1.0 * phase.searches
    assert plain.seconds > plain.searching
    assert ours.seconds < ours.searching, "its searches overlap; all else of this batch takes two or three seconds"
