"""Reading a GGUF: the same numbers as gguf's own reader gives, and an error for every file that isn't as it should be."""

import struct
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import CheckpointError
from agent.models.base import open_base
from agent.models.gguf_file import open_gguf
from tests.agent.models.case import tokens, write_small

Q = gguf.GGMLQuantizationType
HEAD = b"GGUF" + struct.pack("<I", 3)


def text(said: str) -> bytes:
    return struct.pack("<Q", len(said.encode())) + said.encode()


def entry(name: str, shape: tuple[int, ...], kind: int, place: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, place)


def file_of(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_metadata_and_tensors_are_those_of_gguf_s_own_reader(tmp_path: Path):
    write_small(tmp_path / "m.gguf", packing=Q.Q4_1)
    ours, theirs = open_gguf(tmp_path / "m.gguf"), gguf.GGUFReader(tmp_path / "m.gguf")
    for key, field in theirs.fields.items():
        if not key.startswith("GGUF."):
            found: Any = ours.metadata[key]
            assert (found.tolist() if isinstance(found, np.ndarray) else found) == field.contents()
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(ours.read(tensor.name), expected)


@pytest.mark.parametrize("kind", [Q.F16, Q.BF16, Q.Q8_0, Q.Q4_0, Q.Q5_0, Q.Q5_1, Q.Q4_K, Q.Q6_K, Q.IQ4_NL, Q.MXFP4])
def test_every_kind_of_block_is_dequantized_as_by_gguf(tmp_path: Path, kind: gguf.GGMLQuantizationType):
    block, size = gguf.GGML_QUANT_SIZES[kind]
    packed = np.random.default_rng(0).integers(0, 60, (4, 512 // block * size), np.uint8)  # no exponent of infinity
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor("w", packed, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    read = open_gguf(tmp_path / "m.gguf").read("w")
    assert read.dtype == np.float32
    assert np.array_equal(read, gguf.quants.dequantize(packed, kind))


def test_a_kind_that_gguf_cannot_dequantize_is_named_with_those_that_it_can(tmp_path: Path):
    content = HEAD + struct.pack("<QQ", 1, 0) + entry("w", (256, 1), Q.Q8_K, 0)
    path = file_of(tmp_path / "m.gguf", content + bytes(-len(content) % 32) + bytes(292))
    with pytest.raises(CheckpointError, match=r"w as Q8_K, which .* does not dequantize; use a file in F16"):
        open_gguf(path).read("w")


HOSTILE = {
    "no_gguf": (b"PK\3\4" + bytes(100), "not a GGUF file"),
    "empty": (b"", "not a GGUF file"),
    "old": (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
    "big_endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "little-endian"),
    "tensors": (HEAD + struct.pack("<QQ", 2**60, 0), "claims 1,152,921,504,606,846,976 tensors"),
    "values": (HEAD + struct.pack("<QQ", 0, 2**60), "1,152,921,504,606,846,976 values"),
    "few_values": (HEAD + struct.pack("<QQ", 0, 9_000), "8 bytes where 0 are left"),
    "key": (HEAD + struct.pack("<QQQ", 0, 1, 2**63), "9,223,372,036,854,775,808 bytes where 0 are left"),
    "list": (
        HEAD + struct.pack("<QQ", 0, 1) + text("a") + struct.pack("<IIQ", 9, 4, 2**61),
        "are left for its metadata",
    ),
    "bytes": (
        HEAD + struct.pack("<QQ", 0, 1) + text("a") + struct.pack("<IIQ", 9, 0, 2**40),
        "are left for its metadata",
    ),
    "texts": (
        HEAD + struct.pack("<QQ", 0, 1) + text("a") + struct.pack("<IIQ", 9, 8, 2**61),
        "a list of 2,305,843,009",
    ),
    "lists": (
        HEAD + struct.pack("<QQ", 0, 1) + text("a") + struct.pack("<IIQ", 9, 9, 5),
        "a list of 5 values of type 9",
    ),
    "type": (HEAD + struct.pack("<QQ", 0, 1) + text("a") + struct.pack("<I", 77), "unknown type 77"),
    "utf8": (HEAD + struct.pack("<QQQ", 0, 1, 2) + b"\xff\xfe" + bytes(9), "not UTF-8"),
    "dimensions": (HEAD + struct.pack("<QQ", 1, 0) + text("w") + struct.pack("<I", 2**31), "2147483648 dimensions"),
    "tensor_type": (HEAD + struct.pack("<QQ", 1, 0) + entry("w", (32,), 999, 0), "unknown type 999"),
    "outside": (HEAD + struct.pack("<QQ", 1, 0) + entry("w", (32,), 0, 2**50), "would end at byte"),
    "huge": (HEAD + struct.pack("<QQ", 1, 0) + entry("w", (2**62, 2**62), 0, 0), "would end at byte"),
    "nothing": (HEAD + struct.pack("<QQ", 1, 0) + entry("w", (0,), 0, 0), "cannot be stored"),
    "blocks": (HEAD + struct.pack("<QQ", 1, 0) + entry("w", (33,), 8, 0), "cannot be stored as Q8_0"),
    "twice": (HEAD + struct.pack("<QQ", 2, 0) + 2 * entry("w", (1,), 0, 0) + bytes(64), "two tensors w"),
    "alignment": (
        HEAD + struct.pack("<QQ", 0, 1) + text("general.alignment") + struct.pack("<II", 4, 0),
        "general.alignment",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_an_error_at_once(tmp_path: Path, name: str):
    content, said = HOSTILE[name]
    started = perf_counter()
    with pytest.raises(CheckpointError, match=said):
        open_gguf(file_of(tmp_path / "m.gguf", content))
    assert perf_counter() - started < 5


def test_what_is_no_file_is_said(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"missing\.gguf cannot be read: No such file"):
        open_gguf(tmp_path / "missing.gguf")
    with pytest.raises(CheckpointError, match="it is a folder"):
        open_gguf(tmp_path)


def test_numbers_that_are_not_finite_are_damage(tmp_path: Path):
    content = HEAD + struct.pack("<QQ", 1, 0) + entry("w", (2,), 0, 0)
    path = file_of(tmp_path / "m.gguf", content + bytes(-len(content) % 32) + struct.pack("<2f", 1.0, float("nan")))
    with pytest.raises(CheckpointError, match="are not finite"):
        open_gguf(path).read("w")


def test_a_file_that_is_cut_off_after_it_was_opened_is_said(tmp_path: Path):
    write_small(tmp_path / "m.gguf")
    opened = open_gguf(tmp_path / "m.gguf")
    with (tmp_path / "m.gguf").open("r+b") as file:
        file.truncate(9_000)
    with pytest.raises(CheckpointError, match=r"ends inside the tensor blk\.1\.ffn_down\.weight; copy or download"):
        opened.read("blk.1.ffn_down.weight")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "m.gguf"
    write_small(path, packing=Q.Q8_0)
    return path


@given(data=st.data())
def test_damage_anywhere_is_an_error_or_another_model_and_nothing_else(whole: Path, data: st.DataObject):
    content = bytearray(whole.read_bytes())
    if data.draw(st.booleans(), "cut"):
        del content[data.draw(st.integers(0, len(content) - 1), "at") :]
    head = 2_000 + sum(9 + len(token) for token in tokens())
    for _ in range(data.draw(st.integers(0, 4), "flips")):
        at = data.draw(st.integers(0, min(head, len(content)) - 1), "place") if content else 0
        content[at : at + 1] = data.draw(st.binary(min_size=0, max_size=9), "bytes")
    path = whole.with_name("damaged.gguf")
    path.write_bytes(content)
    with suppress(CheckpointError):
        base = open_base(path)
        for name in base.weights.shape.tensors():
            base.weights.read(name)
