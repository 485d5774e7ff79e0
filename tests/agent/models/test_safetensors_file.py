"""safetensors by numpy alone: the same numbers as the library's, bfloat16 as torch rounds it, and damage as an error."""

import importlib
import json
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from agent.errors import CheckpointError
from agent.models.safetensors_file import (
    Floats,
    Stored,
    from_bfloat16,
    open_safetensors,
    to_bfloat16,
    write_safetensors,
)

SHAPES = {"a": (3, 4), "b": (5,)}
NUMBERS = {name: np.random.default_rng(0).standard_normal(size).astype(np.float32) for name, size in SHAPES.items()}


@pytest.mark.train
@pytest.mark.parametrize("stored", ["float32", "bfloat16"])
def test_what_is_written_is_what_the_library_reads(tmp_path: Path, stored: Stored):
    library: Any = importlib.import_module("safetensors.torch")
    write_safetensors(tmp_path / "m.safetensors", iter(NUMBERS.items()), SHAPES, stored=stored)
    read = library.load_file(tmp_path / "m.safetensors")
    ours = open_safetensors(tmp_path / "m.safetensors")
    assert {str(tensor.dtype) for tensor in read.values()} == {f"torch.{stored}"}
    for name, numbers in NUMBERS.items():
        assert np.array_equal(read[name].float().numpy(), ours[name].read())
        assert np.allclose(ours[name].read(), numbers, rtol=0 if stored == "float32" else 2**-8)


@pytest.mark.train
@given(numbers=arrays.arrays(np.float32, 8, elements=st.floats(-(2.0**120), 2.0**120, width=32)))
def test_bfloat16_is_rounded_as_by_torch(numbers: Floats):
    torch: Any = importlib.import_module("torch")
    expected = torch.from_numpy(numbers.copy()).to(torch.bfloat16).float().numpy()
    assert np.array_equal(from_bfloat16(to_bfloat16(numbers)), expected)


def damaged(path: Path, header: Any, content: bytes = bytes(64)) -> Path:
    said = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(said)) + said + content)
    return path


def of(dtype: str, shape: list[Any], begin: Any, end: Any) -> dict[str, Any]:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}}


HOSTILE: dict[str, tuple[Any, str]] = {
    "no_json": (b"{", "its header is not JSON"),
    "deep": (b"[" * 100_000, "its header is not JSON"),
    "list": ([], "its header is not an object"),
    "nothing": ({"w": 3}, "no valid entry for 'w'"),
    "type": (of("F8_E4M3", [4], 0, 4), "as 'F8_E4M3', and F32, F16, BF16, F64 are read"),
    "outside": (of("F32", [32], 0, 128), "is not within it"),
    "huge": (of("F32", [2**40, 2**40], 0, 64), "is not within it"),
    "negative": (of("F32", [-4], 0, 16), "the shape of 'w' is none"),
    "before": (of("F32", [4], -16, 0), "is not within it"),
    "fraction": (of("F32", [1.5], 0, 6), "the shape of 'w' is none"),
    "texts": (of("F32", [4], "0", "16"), "no valid entry"),
    "size": (of("F32", [4], 0, 15), "is not within it"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_an_error(tmp_path: Path, name: str):
    header, said = HOSTILE[name]
    with pytest.raises(CheckpointError, match=said):
        open_safetensors(damaged(tmp_path / "m.safetensors", header))


@pytest.mark.parametrize("content", [b"", b"1234", struct.pack("<Q", 2**62) + b"{}", bytes(8)])
def test_a_file_without_a_header_is_an_error(tmp_path: Path, content: bytes):
    (tmp_path / "m.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match="not a safetensors file, or is cut off"):
        open_safetensors(tmp_path / "m.safetensors")


def test_numbers_that_are_not_finite_are_damage(tmp_path: Path):
    path = damaged(tmp_path / "m.safetensors", of("F32", [2], 0, 8), struct.pack("<2f", 1.0, float("inf")))
    with pytest.raises(CheckpointError, match="are not finite"):
        open_safetensors(path)["w"].read()


@given(
    cut=st.integers(0, 400),
    flips=st.lists(st.tuples(st.integers(0, 300), st.binary(min_size=1, max_size=4)), max_size=3),
)
def test_damage_anywhere_is_an_error_or_other_numbers_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flips: list[tuple[int, bytes]]
):
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    path.unlink(missing_ok=True)
    write_safetensors(path, iter(NUMBERS.items()), SHAPES, stored="float32")
    content = bytearray(path.read_bytes()[: cut or None])
    for place, put in flips:
        content[place : place + len(put)] = put
    path.write_bytes(content)
    with suppress(CheckpointError):
        for entry in open_safetensors(path).values():
            entry.read()
