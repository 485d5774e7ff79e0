"""bm25s starts JAX where it finds it; Cairn does not let it."""

import subprocess
import sys
from pathlib import Path


def test_bm25s_does_not_start_jax_and_others_may_still_import_it(tmp_path: Path) -> None:
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("print('jax was imported')\n", encoding="utf-8")
    (tmp_path / "jax" / "lax.py").write_text("def top_k(values, k): return values, k\n", encoding="utf-8")
    code = "import agent.sources.bm25; print('searched'); import jax"
    paths = f"{tmp_path}:{Path(__file__).parents[3]}"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n")[:2] == ["searched", "jax was imported"], done.stderr
