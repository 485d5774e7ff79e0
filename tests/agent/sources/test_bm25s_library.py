"""bm25s imports JAX, Numba and SciPy where it finds them; Cairn does not let it."""

import subprocess
import sys
from pathlib import Path

NAMES = ("jax", "numba", "scipy")


def test_bm25s_imports_none_of_three_large_libraries_and_others_may_still_import_them(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"print('{name} was imported')\n", encoding="utf-8")
    code = "import agent.sources.bm25; print('searched'); import jax, numba, scipy"
    assert _printed(tmp_path, code) == ["searched", *(f"{name} was imported" for name in NAMES)]


def test_one_that_was_imported_before_stays_imported(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("", encoding="utf-8")
    code = "import jax, sys; import agent.sources.bm25; print(sys.modules['jax'] is jax, 'numba' in sys.modules)"
    assert _printed(tmp_path, code) == ["True False"]


def _printed(folder: Path, code: str) -> list[str]:
    paths = f"{folder}:{Path(__file__).parents[3]}"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
