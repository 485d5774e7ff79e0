"""A model as GGUF: what llama.cpp and transformers read of it is what was written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from agent.errors import CheckpointError
from agent.models.base import open_base
from agent.models.gguf_file import open_gguf
from agent.models.ready import write_hub
from agent.models.safetensors_file import Floats
from agent.models.shape import Kind
from agent.models.to_gguf import Packing, export_gguf, write_gguf
from tests.agent.models.case import KINDS, RandomWeights, hub_log_probabilities, hub_model, small_shape, write_small
from tests.shipped import CT2, HUB

PACKINGS: dict[Packing, float] = {"f32": 1e-5, "f16": 0.01, "bf16": 0.1, "q8_0": 0.2}
"""How far a log-probability may be off on the average, in models of random weights."""


@pytest.mark.train
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packing", PACKINGS)
def test_transformers_reads_the_same_model_back(tmp_path: Path, kind: Kind, packing: Packing):
    write_small(tmp_path / "m.gguf", kind)
    base = open_base(tmp_path / "m.gguf")
    (tmp_path / "hub").mkdir()
    write_hub(base, base.weights, tmp_path / "hub", stored="float32")
    export_gguf(tmp_path / "hub", tmp_path / "again.gguf", packing=packing)
    ids = np.random.default_rng(2).integers(3, 260, 80).tolist()
    expected = hub_log_probabilities(hub_model(tmp_path / "hub"), ids)
    found = hub_log_probabilities(hub_model(tmp_path, gguf_file="again.gguf"), ids)
    assert np.abs(found - expected).mean() < PACKINGS[packing]


@pytest.mark.parametrize("kind", KINDS)
def test_in_float32_nothing_is_lost(tmp_path: Path, kind: Kind):
    weights = write_small(tmp_path / "m.gguf", kind, tied=False, tokenizer__ggml__add_bos_token=True)
    base = open_base(tmp_path / "m.gguf")
    write_gguf(base, base.weights, tmp_path / "again.gguf", name="small", packing="f32")
    again = open_base(tmp_path / "again.gguf")
    assert again.weights.shape == base.weights.shape
    assert again.tokenizer == base.tokenizer
    assert all(np.array_equal(again.weights.read(name), weights.read(name)) for name in weights.shape.tensors())


def test_the_file_says_all_that_llama_cpp_needs(tmp_path: Path):
    write_small(tmp_path / "m.gguf")
    base = open_base(tmp_path / "m.gguf")
    write_gguf(base, base.weights, tmp_path / "again.gguf", name="my model", packing="q8_0")
    first, again = open_gguf(tmp_path / "m.gguf"), open_gguf(tmp_path / "again.gguf")
    for key in first.metadata:
        found: Any = again.metadata[key]
        if key == "general.name":
            assert found == "my model"
        elif not isinstance(found, list | np.ndarray):
            assert found == first.metadata[key]
    kinds = {name: tensor.kind for name, tensor in again.tensors.items()}
    assert kinds["token_embd.weight"] == gguf.GGMLQuantizationType.Q8_0
    assert kinds["output_norm.weight"] == gguf.GGMLQuantizationType.F32


def test_rows_that_cannot_be_cut_into_blocks_are_f16(tmp_path: Path):
    write_small(tmp_path / "m.gguf")
    base = open_base(tmp_path / "m.gguf")
    shape = replace(base.weights.shape, inner=40)
    write_gguf(base, RandomWeights(shape), tmp_path / "again.gguf", name="x", packing="q8_0")
    kinds = {name: tensor.kind for name, tensor in open_gguf(tmp_path / "again.gguf").tensors.items()}
    assert kinds["blk.0.ffn_down.weight"] == gguf.GGMLQuantizationType.F16
    assert kinds["blk.0.ffn_up.weight"] == gguf.GGMLQuantizationType.Q8_0


class Large:
    """Weights that f16 cannot hold."""

    shape = small_shape()

    def read(self, name: str) -> Floats:
        return np.full(self.shape.tensors()[name], 1e6, np.float32)


def test_numbers_that_f16_cannot_hold_are_refused_and_an_older_file_stays(tmp_path: Path):
    write_small(tmp_path / "m.gguf")
    base = open_base(tmp_path / "m.gguf")
    (tmp_path / "again.gguf").write_bytes(b"older")
    with pytest.raises(CheckpointError, match="that f16 cannot hold; save it as bf16"):
        write_gguf(base, Large(), tmp_path / "again.gguf", name="x", packing="f16")
    assert (tmp_path / "again.gguf").read_bytes() == b"older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.gguf", "m.gguf"]


def test_what_cannot_be_exported_is_refused_in_a_sentence(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"llama\.cpp has no name for"):
        export_gguf(HUB, tmp_path / "tiny.gguf", packing="f16")
    with pytest.raises(CheckpointError, match="is a folder; name the file"):
        export_gguf(HUB, tmp_path, packing="f16")
    with pytest.raises(CheckpointError, match="holds no model"):
        export_gguf(tmp_path, tmp_path / "m.gguf", packing="f16")
    with pytest.raises(CheckpointError, match="has only the exported form"):
        export_gguf(CT2, tmp_path / "m.gguf", packing="f16")


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path):
    write_small(tmp_path / "m.gguf")
    base = open_base(tmp_path / "m.gguf")
    (tmp_path / "hub").mkdir()
    write_hub(base, base.weights, tmp_path / "hub", stored="float32")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"cannot be written: .*; choose another place"):
        export_gguf(tmp_path / "hub", tmp_path / "file" / "m.gguf", packing="f16")
