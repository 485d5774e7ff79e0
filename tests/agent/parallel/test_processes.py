"""Processes that are spawned: their path, and what the environment is afterwards."""

import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from agent.parallel.processes import SAFE_PATH, spawning
from agent.settings import environment_of_children

PROGRAM = """
import sys
sys.path[:] = [path for path in sys.path if path]
from agent.parallel.processes import spawning
from agent.parallel.workers import ProcessWorkers
import math
if __name__ == "__main__":
    workers = ProcessWorkers(2)
    print(workers.submit(math.sqrt, 4).result())
    workers.close()
    lock = spawning().Lock()
    import os
    print(os.path.exists("mark"))
"""


def environment() -> dict[str, str]:
    """What a process that starts now would see."""
    look = [sys.executable, "-P", "-c", "import os, json; print(os.environ.get('PYTHONSAFEPATH'))"]
    return {"PYTHONSAFEPATH": subprocess.run(look, capture_output=True, text=True, check=True).stdout.strip()}


def test_the_environment_is_lent_and_given_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with environment_of_children(SAFE_PATH):
        assert environment() == SAFE_PATH
    assert environment() == {"PYTHONSAFEPATH": "None"}


def test_neither_a_worker_nor_the_tracker_of_its_locks_imports_from_the_current_folder(tmp_path: Path):
    for name in ("multiprocessing", "json", "signal"):
        (tmp_path / f"{name}.py").write_text("open('mark', 'w').close()\n", encoding="utf-8")
    (tmp_path / "program").mkdir()
    program = tmp_path / "program" / "main.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["2.0", "False"], done.stderr


def _path() -> list[str]:
    return sys.path


def test_a_pool_works_in_it():
    with ProcessPoolExecutor(1, mp_context=spawning()) as pool:
        assert "" not in pool.submit(_path).result()
