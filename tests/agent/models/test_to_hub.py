"""The hub's form of a GGUF: transformers loads it, with the same log-probabilities and the same tokenizer."""

import importlib
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from agent.models.base import open_base
from agent.models.ready import write_hub
from agent.models.shape import Kind
from agent.policies.hub_form import open_hub_form
from tests.agent.models.case import KINDS, TEMPLATE, hub_log_probabilities, hub_model, real_gguf, write_small


def hub(path: Path, out: Path, stored: Any) -> Path:
    out.mkdir(parents=True)
    base = open_base(path)
    write_hub(base, base.weights, out, stored=stored)
    return out


@pytest.mark.train
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
def test_log_probabilities_are_those_of_the_gguf(tmp_path: Path, kind: Kind, tied: bool):
    write_small(tmp_path / "m.gguf", kind, packing=gguf.GGMLQuantizationType.Q4_0, tied=tied)
    ids = np.random.default_rng(1).integers(3, 260, 80).tolist()
    expected = hub_log_probabilities(hub_model(tmp_path, gguf_file="m.gguf"), ids)
    exact = hub_log_probabilities(hub_model(hub(tmp_path / "m.gguf", tmp_path / "f", "float32")), ids)
    assert np.array_equal(exact, expected)
    rounded = hub_log_probabilities(hub_model(hub(tmp_path / "m.gguf", tmp_path / "b", "bfloat16")), ids)
    assert 0 < np.abs(rounded - expected).max() < 0.5


@pytest.mark.train
@pytest.mark.slow
def test_the_real_model_in_float32_is_the_gguf(tmp_path: Path):
    path = real_gguf()
    ids = [1, 4093, 198, 20279, 9612, 17458, 8838, 47, 2, 198, 1, 520, 9531, 198]
    expected = hub_log_probabilities(hub_model(path.parent, gguf_file=path.name), ids)
    assert np.array_equal(hub_log_probabilities(hub_model(hub(path, tmp_path / "hub", "float32")), ids), expected)


@pytest.mark.train
def test_the_tokenizer_and_the_ends_are_those_of_the_gguf(tmp_path: Path):
    write_small(tmp_path / "m.gguf")
    folder = hub(tmp_path / "m.gguf", tmp_path / "hub", "bfloat16")
    transformers: Any = importlib.import_module("transformers")
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    assert (tokenizer.eos_token, tokenizer.bos_token, tokenizer.pad_token) == (
        "<|im_end|>",
        "<|im_start|>",
        "<|im_end|>",
    )
    assert tokenizer("the <|im_end|>").input_ids == [260, 35, 2]
    assert tokenizer.chat_template == TEMPLATE
    assert tokenizer.apply_chat_template([{"role": "user", "content": "the"}]).input_ids == [1, 260, 2]
    generation: Any = transformers.GenerationConfig.from_pretrained(folder)
    assert generation.eos_token_id == 2


def test_it_can_be_read_back_and_written_again(tmp_path: Path):
    write_small(tmp_path / "m.gguf", "qwen3")
    folder = hub(tmp_path / "m.gguf", tmp_path / "hub", "float32")
    first, again = open_base(tmp_path / "m.gguf"), open_base(folder)
    assert again.weights.shape == first.weights.shape
    assert again.tokenizer == first.tokenizer
    for name in first.weights.shape.tensors():
        assert np.array_equal(first.weights.read(name), again.weights.read(name))
    form = open_hub_form(str(folder))
    assert (form.codec.tokens[form.codec.eos], form.context_tokens) == ("<|im_end|>", 256)
