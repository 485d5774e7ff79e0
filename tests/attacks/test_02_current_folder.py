"""Finding 2: processes that Cairn starts imported from the current folder, and a folder chose that there are some."""

from pathlib import Path

import pytest

from tests.attacks.product import Product

SPRING = "import pathlib\npathlib.Path({mark!r}).touch()\nraise SystemExit(3)\n"
MODULES = ("multiprocessing", "json", "signal", "subprocess", "threading", "agent", "numpy")


def hostile(folder: Path) -> Path:
    """A folder with modules that leave a mark, and a few documents."""
    mark = folder / "mark"
    for name in MODULES:
        (folder / f"{name}.py").write_text(SPRING.format(mark=str(mark)), encoding="utf-8")
    (folder / "docs").mkdir()
    for n in range(4):
        (folder / "docs" / f"{n}.html").write_text(f"<p>The lighthouse {n} is on a rock.</p>", encoding="utf-8")
    return mark


def test_workers_do_not_import_from_the_current_folder(product: Product, tmp_path: Path) -> None:
    mark = hostile(tmp_path)
    done = product.run("index", "build", "docs", "--out", "index", "--workers", "2", cwd=tmp_path, fresh=True)
    assert not mark.exists(), "a module of the folder ran"
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index" / "index.json").exists() or list((tmp_path / "index").iterdir())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("workers = 2", "workers"),
        ('work = "ray"\nray_address = "ray://192.0.2.1:10001"', "work, ray_address"),
        (
            'policy = "vllm"\n[vllm.more]\ntrust_remote_code = true\nworker_extension_cls = "evil.E"',
            "policy, vllm.more",
        ),
        ('[plugins.web]\nfile = "x"', "plugins"),
    ],
)
def test_a_folder_may_not_choose_processes_or_code(product: Product, tmp_path: Path, text: str, names: str) -> None:
    mark = hostile(tmp_path)
    (tmp_path / "cairn.toml").write_text(text, encoding="utf-8")
    done = product.run("index", "build", "docs", "--out", "index", cwd=tmp_path, fresh=True)
    assert done.returncode == 2, done.stdout
    assert f"sets {names}, which" in done.stderr
    assert "cairn trust" in done.stderr
    assert not mark.exists()
    assert not (tmp_path / "index").exists()
