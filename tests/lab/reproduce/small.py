"""A study at the size of a test: it begins from the shipped checkpoint, with a few rollouts, steps and questions."""

from pathlib import Path
from typing import Final

from lab.reproduce.study import Study, read_study
from lab.shipped import HUB
from tests.train.tiny.small import SFT

STUDY: Final = """
kind = "reproduce"
name = "small"
sft = "sft.toml"
rl = "rl.toml"
steps = {steps}
seeds = 2
[worlds]
people = 40
questions = 6
listed = 4
seed = 7
"""
RL: Final = """
kind = "rl"
name = "small"
start = "is put in"
protocols = ["multisearch"]
seed = 3
steps = 1
[data]
people = 40
questions_per_world = 8
[rollout]
prompts = 2
group = 2
temperature = 1.3
policy_tokens = 192
answer_tokens = 48
[[reward]]
name = "outcome"
[learning]
name = "grpo"
[optimizer]
lr = 1e-5
micro_batches = 1
[report]
save_every_steps = 1
traces = 0
"""


def write_recipes(folder: Path, *, steps: int = 1) -> Path:
    """The recipe of the study and those that it names; gives the first."""
    sft = SFT.format(hub=HUB).replace('protocols = ["multisearch"]', 'protocols = ["multisearch", "dag", "evidence"]')
    (folder / "sft.toml").write_text(sft, encoding="utf-8")
    (folder / "rl.toml").write_text(RL, encoding="utf-8")
    path = folder / "study.toml"
    path.write_text(STUDY.format(steps=steps), encoding="utf-8")
    return path


def small_study(folder: Path, *, seeds: tuple[int, ...] = (1,), hub: Path | None = HUB) -> Study:
    """A study in a folder of a test, from the shipped checkpoint as it is."""
    return read_study(write_recipes(folder), folder / "out", seeds=seeds, hub=hub)
