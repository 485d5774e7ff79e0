"""The model that a run leaves: whole, or the previous one."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
safetensors: Any = pytest.importorskip("safetensors.torch")

from agent.errors import SetupError  # noqa: E402 - only where torch is
from agent.policies.model_folder import About, read_about, write_about  # noqa: E402
from tests.fixtures.make_engine import make_hub  # noqa: E402
from tests.train.disk import full_disk  # noqa: E402
from tests.train.rl.small import recipe  # noqa: E402
from train.rl.finish import save_hub  # noqa: E402

pytestmark = pytest.mark.train


def test_a_full_disk_leaves_the_model_of_before(tmp_path: Path) -> None:
    small = recipe(start=str(make_hub(tmp_path / "start")))
    model = transformers.Qwen3ForCausalLM.from_pretrained(small.start)
    hub = save_hub(model, small, tmp_path)
    before = {path.name: path.read_bytes() for path in hub.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "cairn.json", "README.md"} <= before.keys()
    with torch.no_grad():
        model.lm_head.weight.add_(1.0)
    with pytest.raises(SetupError, match="free some space there, then continue with --resume"), full_disk(10_000):
        save_hub(model, small, tmp_path)
    assert {path.name: path.read_bytes() for path in hub.iterdir()} == before
    assert not (tmp_path / "hub.new").exists()


def test_weights_that_were_brought_together_take_the_place_of_the_models_own(tmp_path: Path) -> None:
    """As where a process holds a share of them alone."""
    small = recipe(start=str(make_hub(tmp_path / "start")))
    model = transformers.Qwen3ForCausalLM.from_pretrained(small.start)
    whole = {name: tensor + 1.0 for name, tensor in model.state_dict().items()}
    written = safetensors.load_file(save_hub(model, small, tmp_path, weights=whole) / "model.safetensors")
    assert written.keys() == whole.keys()
    assert all(torch.equal(written[name], whole[name]) for name in whole)


def test_a_model_that_was_shown_no_dates_says_so_when_it_is_written(tmp_path: Path) -> None:
    start = make_hub(tmp_path / "start")
    about = About(name="small", protocols=("multisearch",), context_tokens=512, eos="<eos>", dates=False)
    write_about(start, about)
    model = transformers.Qwen3ForCausalLM.from_pretrained(start)
    assert not read_about(save_hub(model, recipe(start=str(start)), tmp_path)).dates
