from pathlib import Path

import pytest

pytest.importorskip("trl")

from agent.build.agent import build_protocol
from agent.protocols import protocol_named
from agent.settings import load_settings
from tests.train.rl.small import PAIR, hot_checkpoint, recipe
from train.checkpoints.export import as_toml
from train.rl.run import RlRun

pytestmark = pytest.mark.train


def test_a_protocol_of_ones_own_is_learned_and_goes_with_the_model(tmp_path: Path) -> None:
    mine = protocol_named("multisearch").model_copy(update={"name": "mine"})
    path = tmp_path / "mine.toml"
    path.write_text(as_toml(mine), encoding="utf-8")
    small = recipe(1, start=str(hot_checkpoint(tmp_path / "hot")), rollout=PAIR, protocols=(str(path),))
    shares: list[float] = []
    assert RlRun(small, tmp_path / "run", threads=1).go(lambda _, figures: shares.append(figures["masked/share"]))
    assert shares[0] < 1
    path.unlink()
    assert build_protocol(load_settings(model=str(tmp_path / "run" / "hub"))) == mine
