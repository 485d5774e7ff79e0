"""The whole way at a small size: from worlds to a started agent that answers, also after a kill between.

It starts from the first shipped checkpoint, because a policy from nothing needs more minutes than a test has.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from agent.errors import SetupError  # noqa: E402 - only where torch is
from agent.policies.model_folder import look_at  # noqa: E402
from tests.train.tiny.small import write_recipes  # noqa: E402
from train.tiny.ledger import REPORT  # noqa: E402
from train.tiny.recipe import SHIPPED, read_recipes  # noqa: E402
from train.tiny.run import make  # noqa: E402
from train.tiny.stages import STAGES  # noqa: E402

pytestmark = [pytest.mark.train]


def told(out: Path) -> dict[str, Any]:
    """Stage → its entry, as report.json has them now."""
    path = out / REPORT
    return dict(json.loads(path.read_text(encoding="utf-8"))["stages"]) if path.exists() else {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_way_that_was_killed_goes_on_and_ends_in_an_agent_that_answers(tmp_path: Path) -> None:
    recipe, out = write_recipes(tmp_path), tmp_path / "out"
    command = [sys.executable, "-m", "agent.cli", "train", "tiny", "--recipe", str(recipe), "--out", str(out)]
    killed = subprocess.Popen([*command, "--processes", "2", "--threads", "2"], stderr=subprocess.DEVNULL)
    try:
        while not told(out).get("sft", {}).get("done"):
            assert killed.poll() is None
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    before = told(out)
    assert not before.get("test", {}).get("done")

    ended = subprocess.run([*command, "--resume"], capture_output=True, text=True, encoding="utf-8", check=False)
    assert ended.returncode == 0, ended.stderr
    assert "SFT: done before" in ended.stderr
    assert f"serve it: cairn serve --model {out}" in ended.stdout.replace("\n", "")

    stages = told(out)
    assert list(stages) == [stage.name for stage in STAGES]
    assert all(entry["done"] for entry in stages.values())
    assert stages["sft"] == before["sft"]
    assert stages["sft"]["figures"]["tokens"] >= 6000
    assert stages["test"]["figures"]["n"] == 4
    assert stages["test"]["figures"]["em"] >= 0.5, "the checkpoint that it begins with answers nine of ten"
    assert stages["serve"]["figures"]["answer"]
    assert {stages["dev"]["figures"]["best"]} <= {"sft", "rl"}

    found = look_at(out)
    assert found.hub == out / "hub"
    assert found.exported == out / "ct2"
    assert "test-v1, multisearch" in (out / "ct2" / "README.md").read_text(encoding="utf-8")
    report = (out / "report.md").read_text(encoding="utf-8")
    assert all(f"| {stage.title} | " in report for stage in STAGES)


def test_the_shipped_recipe_starts_from_nothing(tmp_path: Path) -> None:
    recipes = read_recipes(SHIPPED, start=tmp_path / "hub")
    assert (recipes.sft.start, recipes.rl.start) == ("", str(tmp_path / "hub"))


def test_more_processes_than_share_a_step_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="nothing to share"):
        make(tmp_path / "out", recipe=write_recipes(tmp_path), processes=3)
    assert not (tmp_path / "out").exists()


def test_a_world_that_is_too_small_for_its_questions_ends_in_a_sentence_and_is_no_stage_that_is_done(
    tmp_path: Path,
) -> None:
    recipe = write_recipes(tmp_path, questions=5000)
    with pytest.raises(SetupError, match="ask fewer questions"):
        make(tmp_path / "out", recipe=recipe)
    assert not told(tmp_path / "out")["worlds"]["done"]
