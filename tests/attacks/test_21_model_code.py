"""Finding 21: a model's folder ran its own code after a "y" on standard input."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.attacks.product import Product
from tests.shipped import HUB

SPRING = """
import pathlib
pathlib.Path({mark!r}).touch()
from transformers import PretrainedConfig, PreTrainedModel
class Config(PretrainedConfig):
    model_type = "strange"
class Model(PreTrainedModel):
    config_class = Config
"""


def has_transformers(product: Product) -> bool:
    look = "import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, ('torch', 'transformers'))))"
    return subprocess.run([str(product.python), "-c", look], capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_a_model_runs_no_code_of_its_own_and_nothing_is_confirmed(product: Product, tmp_path: Path) -> None:
    if not has_transformers(product):
        pytest.skip("the product has no transformers")
    model, mark = tmp_path / "model", tmp_path / "mark"
    shutil.copytree(HUB, model)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    auto = {"AutoConfig": "strange.Config", "AutoModelForCausalLM": "strange.Model"}
    config |= {"model_type": "strange", "architectures": ["Model"], "auto_map": auto}
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (model / "strange.py").write_text(SPRING.format(mark=str(mark)), encoding="utf-8")
    engine = ("--policy", "transformers", "--model", model, "--protocol", "cairn")
    done = product.run("ask", "Who wrote Dune?", *engine, cwd=tmp_path, input="y\n" * 4, seconds=110)
    assert not mark.exists(), "the model's code ran"
    assert done.returncode == 1
    assert "transformers cannot load" in done.stderr
    assert "[y/N]" not in done.stdout + done.stderr
