"""A study at the size of a test: it begins from the shipped checkpoint, with a few rollouts, steps and questions."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lab.reproduce.jobs import jobs_of
from lab.reproduce.ledger import Ledger
from lab.reproduce.papers import directions_of
from lab.reproduce.study import Study, read_study
from lab.shipped import HUB
from tests.train.tiny.small import SFT

STUDY: Final = """
kind = "reproduce"
name = "small"
sft = "sft.toml"
rl = "rl.toml"
steps = {steps}
points = {points}
seeds = {seeds}
[worlds]
people = 40
questions = {questions}
list_people = 60
listed = 2
embedder = "{embedder}"
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
prompts = 1
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


def write_recipes(
    folder: Path, *, steps: int = 1, points: int = 1, seeds: int = 1, questions: int = 6, embedder: str = "words"
) -> Path:
    """The recipe of the study and those that it names; gives the first."""
    sft = SFT.format(hub=HUB).replace('protocols = ["multisearch"]', 'protocols = ["multisearch", "dag", "evidence"]')
    (folder / "sft.toml").write_text(sft, encoding="utf-8")
    (folder / "rl.toml").write_text(RL, encoding="utf-8")
    path = folder / "study.toml"
    numbers = {"steps": steps, "points": points, "seeds": seeds, "questions": questions}
    path.write_text(STUDY.format(**numbers, embedder=embedder), encoding="utf-8")
    return path


def small_study(folder: Path, *, hub: Path | None = HUB, **said: Any) -> Study:
    """A study in a folder of a test, from the shipped checkpoint as it is; `said` is for `write_recipes`."""
    return read_study(write_recipes(folder, **said), folder / "out", hub=hub)


def keep(study: Study, name: str, seed: int, figures: Mapping[str, list[float]]) -> None:
    """Answers as a job leaves them that was done by the study's plan: figure → one value a question."""
    job = next(one for one in jobs_of(study, directions_of("all")) if one.name == f"evaluated/{name}/{seed}")
    ledger = Ledger(study.out)
    ledger.begin(job.name, job.plan)
    ledger.end(job.name, 1.0, {})
    folder = study.answers_folder(name, seed)
    folder.mkdir(parents=True)
    columns: list[dict[str, Any]] = [
        dict(zip(figures, row, strict=True)) for row in zip(*figures.values(), strict=True)
    ]
    rows = {str(number): {"type": "chain1", **row} for number, row in enumerate(columns)}
    (folder / "answers.json").write_text(json.dumps(rows), encoding="utf-8")
