"""What the embedded engine gets: what CTranslate2's own converter writes, and the log-probabilities of transformers."""

import asyncio
import importlib
import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from agent.errors import CheckpointError
from agent.models.base import Base, open_base
from agent.models.ready import write_hub
from agent.models.safetensors_file import Floats
from agent.models.shape import Kind
from agent.models.to_ct2 import MOST_INT8, Quantization, to_int8, write_ct2
from agent.policies.base import Sampling
from agent.policies.checkpoint import open_checkpoint
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.model_folder import About
from agent.protocols import protocol_named
from tests.agent.models.case import (
    KINDS,
    hub_log_probabilities,
    hub_model,
    real_gguf,
    served_log_probabilities,
    write_small,
)
from tests.shipped import HUB

SMALL_INT8 = 0.2
"""How far the mean log-probability of a token may be off with int8, in models of random weights."""
REAL_FLOAT32 = 3e-4
REAL_INT8 = 0.5
"""The same for SmolLM2-135M without training, whose activations have outliers: int8 costs it .2 to .35."""
REAL_AGREE = 0.75
"""Share of the tokens whose most probable successor int8 must leave as it is."""
TEXT = (
    "<|im_start|>user\nWho directed Winter Harbour, and in which year?<|im_end|>\n<|im_start|>assistant\n"
    "Paula Ferri directed Winter Harbour; the drama film came out in 1987.<|im_end|>\n"
)


def converted(base: Base, out: Path, quantization: Quantization) -> Path:
    out.mkdir(parents=True)
    about = About(name="small", protocols=("cairn",), context_tokens=base.weights.shape.context, eos=base.tokenizer.end)
    write_ct2(base, base.weights, out, about=about, quantization=quantization)
    return out


def hub(base: Base, out: Path) -> Path:
    out.mkdir(parents=True)
    write_hub(base, base.weights, out, stored="float32")
    return out


@pytest.mark.train
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
def test_the_folder_is_byte_for_byte_that_of_ctranslate2_s_own_converter(tmp_path: Path, kind: Kind, tied: bool):
    from train.checkpoints.export import export_checkpoint

    write_small(tmp_path / "m.gguf", kind, packing=gguf.GGMLQuantizationType.Q4_1, tied=tied)
    base = open_base(tmp_path / "m.gguf")
    for quantization in ("int8", "float32"):
        ours = open_checkpoint(converted(base, tmp_path / "ours" / quantization, quantization))
        theirs = export_checkpoint(hub(base, tmp_path / "hub" / quantization), tmp_path / quantization, quantization)
        assert ours.manifest.files == theirs.manifest.files


@pytest.mark.train
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_log_probabilities_are_those_of_transformers_on_the_same_gguf(tmp_path: Path, kind: Kind, kv_heads: int):
    write_small(tmp_path / "m.gguf", kind, packing=gguf.GGMLQuantizationType.Q8_0, kv_heads=kv_heads)
    base = open_base(tmp_path / "m.gguf")
    ids = np.random.default_rng(0).integers(3, 260, 100).tolist()
    expected = hub_log_probabilities(hub_model(tmp_path, gguf_file="m.gguf"), ids)
    exact = served_log_probabilities(converted(base, tmp_path / "f", "float32"), ids, compute_type="float32")
    assert np.abs(exact - expected).max() < 1e-4
    packed = served_log_probabilities(converted(base, tmp_path / "i", "int8"), ids, compute_type="int8_float32")
    assert np.abs(packed - expected).mean() < SMALL_INT8


def of_next(log_probabilities: Floats, ids: list[int]) -> Floats:
    return log_probabilities[np.arange(len(ids) - 1), ids[1:]]


@pytest.mark.train
@pytest.mark.slow
def test_the_real_model_s_log_probabilities_are_those_of_transformers(tmp_path: Path):
    from tokenizers import Tokenizer

    path = real_gguf()
    base = open_base(path)
    ids = Tokenizer.from_str(base.tokenizer.json).encode(TEXT).ids
    expected = hub_log_probabilities(hub_model(path.parent, gguf_file=path.name), ids)
    exact = served_log_probabilities(converted(base, tmp_path / "f", "float32"), ids, compute_type="float32")
    assert np.abs(exact - expected).max() < REAL_FLOAT32
    packed = served_log_probabilities(converted(base, tmp_path / "i", "int8"), ids, compute_type="int8_float32")
    assert np.abs(of_next(packed, ids) - of_next(expected, ids)).mean() < REAL_INT8
    assert (packed.argmax(-1) == expected.argmax(-1)).mean() > REAL_AGREE


def test_the_embedded_policy_serves_it(tmp_path: Path):
    write_small(tmp_path / "m.gguf")
    policy = EmbeddedPolicy.load(converted(open_base(tmp_path / "m.gguf"), tmp_path / "served", "int8"), workers=1)

    async def turn() -> list[int]:
        policy.open(protocol_named("cairn"), "the")  # the prompt fits
        pieces = policy.sample((260, 35), Sampling(temperature=0.0), ends=frozenset(), max_tokens=8)
        found = [number async for several in pieces for number, _ in several]
        await policy.aclose()
        return found

    assert policy.checkpoint.codec.tokens[policy.checkpoint.codec.eos] == "<|im_end|>"
    assert 0 < len(asyncio.run(turn())) <= 8


def test_a_vocabulary_larger_than_the_embeddings_is_refused(tmp_path: Path):
    write_small(tmp_path / "m.gguf")
    base = open_base(tmp_path / "m.gguf")
    fields: dict[str, Any] = json.loads(base.tokenizer.json)
    fields["model"]["vocab"]["moreandmore"] = 9_999
    more = Base(base.path, base.weights, base.tokenizer.__class__(json=json.dumps(fields), end="<|im_end|>"))
    with pytest.raises(CheckpointError, match="they are of different models"):
        converted(more, tmp_path / "served", "int8")


@pytest.mark.train
def test_the_shipped_checkpoint_converts_as_it_was_converted(tmp_path: Path):
    from train.checkpoints.export import export_checkpoint

    base = open_base(HUB)
    ours = open_checkpoint(converted(base, tmp_path / "ours", "int8"))
    theirs = export_checkpoint(HUB, tmp_path / "theirs")
    assert ours.manifest.files["model.bin"] == theirs.manifest.files["model.bin"]
    assert ours.manifest.files["vocabulary.json"] == theirs.manifest.files["vocabulary.json"]


def test_two_products_of_an_int8_weight_fit_16_bits():
    """CPUs without VNNI add two products of an activation, 0 to 255, and a weight in 16 bits."""
    floats: Floats = np.random.default_rng(0).standard_normal((6, 64)).astype(np.float32)
    floats[2] = 0
    part: Any = importlib.import_module("ctranslate2.specs.common_spec").LinearSpec()
    vars(part)["weight"] = floats.copy()  # as an attribute, its type would be an array's for good
    part.validate()
    to_int8(part)
    packed: Floats = part.weight.numpy().astype(np.float32)
    scale: Floats = part.weight_scale.numpy()[:, None]
    assert np.abs(packed).max(axis=1).tolist() == [MOST_INT8, MOST_INT8, 0, *[MOST_INT8] * 3]
    assert np.iinfo(np.int16).max >= 2 * 255 * MOST_INT8
    assert (np.abs(packed / scale - floats) <= 0.5001 / scale).all()
