"""Whole runs of what the other tests of runs do not learn by: GDPO, and a KL term that fades."""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from tests.fixtures.make_engine import make_hub  # noqa: E402 - only where torch is
from tests.train.rl.failing import Lucky  # noqa: E402
from tests.train.rl.small import PAIR, brief  # noqa: E402
from train.rl.recipe import RlRecipe  # noqa: E402
from train.rl.run import RlRun  # noqa: E402
from train.safety.manifest import RunManifest, read_manifest  # noqa: E402

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A policy of random weights."""
    return str(make_hub(tmp_path_factory.mktemp("start") / "hub"))


def ran(small: RlRecipe, out: Path) -> tuple[RunManifest, list[Mapping[str, float]]]:
    """Its manifest, and the lines of its log; every line is a step, and was reported."""
    steps: list[int] = []
    assert RlRun(small, out, threads=1, around=Lucky.of).go(lambda step, _: steps.append(step))
    lines = [json.loads(line) for line in (out / "monitors.jsonl").read_text(encoding="utf-8").splitlines()]
    assert steps == [line["step"] for line in lines] == list(range(1, small.steps + 1))
    return read_manifest(out), lines


def moved(hub: Path, start: str) -> float:
    """The farthest that a weight went."""
    files: Any = importlib.import_module("safetensors.torch")
    after, before = (files.load_file(folder / "model.safetensors") for folder in (hub, Path(start)))
    assert after.keys() == before.keys()
    return max((after[name] - before[name].float()).abs().max().item() for name in after)


def test_gdpo_learns_from_every_part_of_the_reward_on_its_own(start: str, tmp_path: Path) -> None:
    parts = ({"name": "outcome", "settings": {"format_bonus": 0.1}, "weights": {"answer": 1.0, "format": 0.2}},)
    small = brief(start, 2, reward=parts, learning={"name": "gdpo"})
    manifest, lines = ran(small, tmp_path)
    assert (manifest.kind, manifest.state, manifest.figures["steps"]) == ("rl", "done", 2.0)
    assert manifest.recipe["learning"]["name"] == "gdpo"
    assert manifest.recipe["reward"][0]["weights"] == {"answer": 1.0, "format": 0.2}
    for line in lines:
        assert {"reward/answer", "reward/format", "reward/total", "trainer/entropy"} <= line.keys()
        assert line["trainer/rows"] > 0
        assert line["trainer/grad_norm"] > 0
        assert 0.98 < line["trainer/ratio_mean"] < 1.02
        assert line["trainer/beta"] == 0
    assert 0 < moved(tmp_path / "hub", start) < 0.01


def test_a_kl_term_holds_the_policy_to_its_start_and_fades_by_its_schedule(start: str, tmp_path: Path) -> None:
    small = brief(start, 4, rollout=PAIR, learning={"kl": ((0.0, 0.2), (0.5, 0.0))}, optimizer={"lr": 1e-3})
    manifest, lines = ran(small, tmp_path)
    assert (manifest.state, manifest.recipe["learning"]["kl"]) == ("done", [[0.0, 0.2], [0.5, 0.0]])
    assert [line["trainer/beta"] for line in lines] == pytest.approx([0.2, 0.1, 0.0, 0.0])
    first, second = (line["trainer/kl"] for line in lines[:2])
    assert 0 <= first < 1e-5 < second  # the reference is the start itself, and the policy leaves it
    assert all("trainer/kl" not in line for line in lines[2:])
    assert all(line["trainer/rows"] >= line["rollouts"] * (1 - line["masked/share"]) for line in lines[:2])
    assert moved(tmp_path / "hub", start) > 0
