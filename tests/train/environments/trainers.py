"""What the tests of trainers share: where their environments are, and how a script runs in one, far from our folder."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[3]
SCRIPTS: Final = Path(__file__).parent / "scripts"
MARKS: Final = [pytest.mark.trainers, pytest.mark.slow, pytest.mark.timeout(180)]
PLANTED: Final = ("agent", "train", "typing_extensions", "httpx2")
"""Modules that someone may put into the folder in which a trainer is started."""


def python_of(config: pytest.Config, trainer: str) -> Path:
    """Nothing is skipped where the option says that the trainer is there."""
    if said := config.getoption(f"--{trainer}"):
        return Path(said).absolute()
    pytest.skip("the trainer is in an environment of its own; run: make trainers")


def run(python: Path, script: str, folder: Path, **said: Any) -> dict[str, Any]:
    """Run a script in a folder that holds strange modules, and read its last line."""
    for name in PLANTED:
        (folder / f"{name}.py").write_text("open('ran', 'w').close()\n", encoding="utf-8")
    environment = {
        "HOME": str(folder),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # it would be fetched
        "OMP_NUM_THREADS": "1",
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
    }
    command = [str(python), str(SCRIPTS / script), json.dumps({"python": sys.executable} | said)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=150, env=environment, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert not (folder / "ran").exists()
    return json.loads(done.stdout.splitlines()[-1])


def write_questions(folder: Path, documents: dict[str, str], questions: dict[str, str]) -> dict[str, Any]:
    """A corpus and a question list, as the table `data` of the settings."""
    rows = [{"id": title, "title": title, "text": text} for title, text in documents.items()]
    listed = [{"id": question, "question": question, "answers": [gold]} for question, gold in questions.items()]
    for name, lines in (("documents", rows), ("questions", listed)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return {"questions": str(folder / "questions.jsonl"), "search": {"corpus": str(folder / "documents.jsonl")}}
