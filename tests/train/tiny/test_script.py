"""train/tiny.sh at a small size: from worlds to an agent that answers, and nothing is done twice.

It starts from the shipped checkpoint, because a policy from nothing needs more minutes than a test has.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

from agent.policies.model_folder import look_at
from tests.train.tiny.small import write_recipes
from train.common.recipe import read_recipe
from train.common.recipe_files import read_table
from train.rl.recipe import read_rl_recipe

pytestmark = [pytest.mark.train]

ROOT = Path(__file__).parents[3]
STAGES = ("worlds", "sft", "rl", "dev_sft", "dev_rl", "keep", "test", "ask")


def run(folder: Path) -> "subprocess.CompletedProcess[str]":
    small = {"TINY_OUT": "out", "TINY_RECIPES": str(folder), "TINY_PROCESSES": "1", "TINY_THREADS": "1"}
    small |= {"TINY_DEV_QUESTIONS": "6", "TINY_TEST_QUESTIONS": "12"}
    return subprocess.run(
        ["env", *(f"{name}={value}" for name, value in small.items()), f"CAIRN={cairn()}", "bash", str(script())],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=folder,
    )


def cairn() -> str:
    return shlex.join([sys.executable, "-m", "agent.cli"])


def script() -> Path:
    return ROOT / "train" / "tiny.sh"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_script_ends_in_an_agent_that_answers_and_does_nothing_twice(tmp_path: Path) -> None:
    write_recipes(tmp_path)
    ended = run(tmp_path)
    assert ended.returncode == 0, ended.stderr
    out = tmp_path / "out"
    found = look_at(out)
    assert (found.hub, found.exported) == (out / "hub", out / "ct2")
    figures = json.loads((out / "test.json").read_text(encoding="utf-8"))
    assert figures["n"] == 12
    assert figures["em"] >= 0.5, "the checkpoint that it begins with answers nine of ten"
    report = (out / "report.md").read_text(encoding="utf-8")
    assert f"evaluated once: {figures['em']}" in report
    assert all(f"| {name} | " in report for name in STAGES)
    assert "| test | 12 |" in (out / "README.md").read_text(encoding="utf-8")
    assert "The answer is " in ended.stdout

    (out / "seconds" / "ask").unlink()
    again = run(tmp_path)
    assert again.returncode == 0, again.stderr
    assert [name for name in STAGES if f"{name}: done before" in again.stdout] == list(STAGES[:-1])


def test_the_recipes_of_the_script_fit_together_and_begin_from_nothing() -> None:
    recipes = ROOT / "train" / "recipes"
    sft, rl = read_recipe(recipes / "tiny_sft.toml"), read_rl_recipe(recipes / "tiny_rl.toml", start="sft/hub")
    assert not sft.start
    assert sft.protocols == rl.protocols
    assert sft.curriculum[-1].mix == rl.curriculum[-1].mix
    assert sft.data.difficulty == rl.data.difficulty
    assert sft.weights_at(0.0).environment > 0 == sft.weights_at(0.5).environment
    assert sft.optimizer.batches_per_step == 2


def test_the_lists_of_the_script_are_as_hard_as_the_worlds_that_it_trains_on() -> None:
    said = next(line for line in script().read_text(encoding="utf-8").splitlines() if line.startswith("EASIEST="))
    listed = dict(pair.split("=") for pair in said.partition("=")[2].strip('"').split())
    trained = read_table(ROOT / "train" / "recipes" / "tiny_sft.toml")["data"]["difficulty"]
    assert {name: [float(value)] * 2 for name, value in listed.items() if name in trained} == trained
    assert set(listed) - set(trained) == {"hops", "unanswerable", "well_known"}
