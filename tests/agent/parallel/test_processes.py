"""Processes that are spawned: their path, and what the environment is afterwards."""

import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from agent.parallel.processes import SAFE_PATH, preloaded, spawning
from agent.settings import environment_of_children

PROGRAM = """
import sys
sys.path[:] = [path for path in sys.path if path]
from agent.parallel.processes import preloaded, spawning
from agent.parallel.workers import ProcessWorkers
from concurrent.futures import ProcessPoolExecutor
import math
if __name__ == "__main__":
    workers = ProcessWorkers(2)
    print(workers.submit(math.sqrt, 4).result())
    workers.close()
    lock = spawning().Lock()
    with ProcessPoolExecutor(1, mp_context=preloaded("wave")) as pool:
        print(pool.submit(math.sqrt, 9).result())
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
    assert done.stdout.splitlines() == ["2.0", "3.0", "False"], done.stderr


def _path() -> list[str]:
    return sys.path


def test_a_pool_works_in_it():
    with ProcessPoolExecutor(1, mp_context=spawning()) as pool:
        assert "" not in pool.submit(_path).result()


def _has_wave() -> bool:
    return "wave" in sys.modules


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they are spawned")
def test_processes_begin_with_what_was_loaded_for_all_of_them_which_this_one_has_not():
    with ProcessPoolExecutor(1, mp_context=preloaded("wave"), max_tasks_per_child=1) as pool:
        assert [pool.submit(_has_wave).result() for _ in range(2)] == [True, True]
    assert not _has_wave()
