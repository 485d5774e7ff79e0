"""The first steps of two small runs, as they were recorded. `python -m tests.train.test_golden_step` writes them again."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from tests.train.rl.small import recipe as small_rl  # noqa: E402 - only where torch is
from tests.train.sft.test_run import write_recipe  # noqa: E402
from train.common.recipe import read_recipe  # noqa: E402
from train.rl.run import RlRun  # noqa: E402
from train.sft.run import SftProgress, SftRun  # noqa: E402

pytestmark = [pytest.mark.train, pytest.mark.slow]

GOLDEN = Path(__file__).parent.parent / "golden" / "steps.json"
TIMES = ("seconds", "time", "logprob_difference", "ratio")
"""What a name holds whose figure differs from run to run."""


def sft_steps(folder: Path) -> list[list[float]]:
    """Tokens, loss and accuracy of each step."""
    torch.set_num_threads(1)
    steps: list[list[float]] = []

    def keep(progress: SftProgress) -> None:
        steps.append([progress.tokens, progress.loss, progress.policy_loss, progress.accuracy])

    assert SftRun(read_recipe(write_recipe(folder)), folder / "out").run(keep)
    return steps


def lasting(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: figure for name, figure in figures.items() if not any(word in name for word in TIMES)}


def rl_steps(folder: Path) -> list[dict[str, float]]:
    steps: list[dict[str, float]] = []
    recipe = small_rl(1)
    RlRun(recipe, folder / "rl", threads=1).go(lambda _, figures: steps.append(lasting(figures)), resume=False)
    return steps


def recorded() -> dict[str, Any]:
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_supervised_steps_have_the_golden_losses(tmp_path: Path) -> None:
    assert sft_steps(tmp_path) == [pytest.approx(step, rel=1e-3, abs=1e-4) for step in recorded()["sft"]]


def test_a_reinforcement_step_has_the_golden_figures(tmp_path: Path) -> None:
    for step, golden in zip(rl_steps(tmp_path), recorded()["rl"], strict=True):
        assert {name: step[name] for name in golden} == pytest.approx(golden, rel=1e-2, abs=1e-4)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        kept = {"sft": sft_steps(Path(made)), "rl": rl_steps(Path(made))}
        GOLDEN.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
