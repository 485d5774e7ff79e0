"""`cairn checkpoint export --format gguf`: the file, what the command says, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

from agent.cli import run as cairn
from agent.models.adapter import merged, open_adapter
from agent.models.base import open_base
from agent.models.gguf_file import open_gguf
from agent.models.ready import write_hub
from agent.policies.model_folder import About, write_about
from tests.agent.models.case import write_small
from tests.agent.models.test_adapter import pair, write_adapter


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A checkpoint of a run, in its folder `hub`."""
    write_small(tmp_path / "small.gguf", "qwen3")
    base = open_base(tmp_path / "small.gguf")
    folder = tmp_path / "run" / "hub"
    folder.mkdir(parents=True)
    write_hub(base, base.weights, folder, stored="bfloat16")
    return folder


@pytest.mark.parametrize(("packing", "size"), [(None, "0.5"), ("bf16", "0.5"), ("q8_0", "0.3")])
def test_the_file_holds_the_checkpoint(
    tmp_path: Path, hub: Path, packing: str | None, size: str, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out" / "m.gguf"
    words = ["--quantization", packing] if packing else []
    assert cairn(["checkpoint", "export", str(hub.parent), "--format", "gguf", "--out", str(out), *words]) == 0
    assert capsys.readouterr().out == f"exported: {out} (run, {packing or 'f16'}, {size} MB)\n"
    assert open_base(out).weights.shape == open_base(hub).weights.shape
    assert open_base(out).tokenizer == open_base(hub).tokenizer


def test_the_name_is_the_one_that_is_said_or_that_of_the_policy(tmp_path: Path, hub: Path):
    write_about(hub, About(name="cairn-mine", protocols=("cairn",), context_tokens=64, eos="<|im_end|>"))
    out = tmp_path / "m.gguf"
    command = ["checkpoint", "export", str(hub), "--format", "gguf", "--out", str(out)]
    assert cairn(command) == 0
    assert open_gguf(out).text("general.name") == "cairn-mine"
    assert cairn([*command, "--name", "other"]) == 0
    assert open_gguf(out).text("general.name") == "other"


def test_a_quantization_of_the_other_form_is_refused(tmp_path: Path, hub: Path, capsys: pytest.CaptureFixture[str]):
    out = str(tmp_path / "m.gguf")
    assert cairn(["checkpoint", "export", str(hub), "--format", "gguf", "--quantization", "int8", "--out", out]) == 2
    assert "gguf has f16, bf16, q8_0" in capsys.readouterr().err
    assert cairn(["checkpoint", "export", str(hub), "--format", "gguf", "--protocol", "cairn", "--out", out]) == 2
    assert "a GGUF file has no place for it" in capsys.readouterr().err
    assert cairn(["checkpoint", "export", str(hub), "--quantization", "q8_0", "--out", out]) == 2
    assert "ct2 has int8, float32" in capsys.readouterr().err


def test_an_adapter_is_merged_into_the_model_that_it_names(tmp_path: Path, hub: Path):
    out = tmp_path / "m.gguf"
    adapter = write_adapter(tmp_path / "mine", pair(out=512), base_model_name_or_path=str(hub))
    assert (
        cairn(["checkpoint", "export", str(adapter), "--format", "gguf", "--quantization", "bf16", "--out", str(out)])
        == 0
    )
    assert open_gguf(out).text("general.name") == "mine"
    expected = merged(open_base(hub).weights, open_adapter(adapter), name="run").read(
        "model.layers.0.self_attn.q_proj.weight"
    )
    found = open_base(out).weights.read("model.layers.0.self_attn.q_proj.weight")
    assert np.allclose(found, expected, rtol=2**-7)
    assert not np.allclose(found, open_base(hub).weights.read("model.layers.0.self_attn.q_proj.weight"), rtol=2**-7)
