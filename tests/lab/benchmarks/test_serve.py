"""The benchmark's own sums, and a small run of it against a tiny engine."""

import json
from pathlib import Path

import pytest

from agent.cli import run
from agent.errors import SetupError
from agent.settings import CairnSettings
from lab.benchmarks.serve import Spread, measure

ENGINE = Path(__file__).parents[2] / "fixtures" / "engine"


@pytest.mark.slow
def test_a_small_run_loses_nothing_and_prints_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bench", "serve", "--checkpoint", str(ENGINE), "--streams", "4", "--questions", "8", "--json"]
    assert run(command) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["questions"], figures["lost"]) == (8, 0)
    assert 0 < figures["first_byte_ms_p50"] <= figures["last_byte_ms_p50"] <= figures["last_byte_ms_p99"]
    assert 0 < figures["cpu_share_ours"] < 1
    assert figures["answers_per_s"] > 0


def test_a_server_that_cannot_start_is_the_servers_own_sentence() -> None:
    settings = CairnSettings(checkpoint=Path("no such folder"), port=0)
    with pytest.raises(SetupError, match="no such folder"):
        measure(settings, streams=1, questions=1, progress=lambda: None)


def test_percentiles_are_of_all_values() -> None:
    spread = Spread.of([float(n) for n in range(101)])
    assert (spread.p50, spread.p99) == (50, 99)
    assert Spread.of([3.0]) == Spread(3.0, 3.0)
    assert Spread.of([]) == Spread(0.0, 0.0)
