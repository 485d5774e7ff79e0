"""Reads a GGUF file: what it says of itself, and its tensors one at a time, as float32.

The file may be anyone's. Counts, lengths and places are checked against its size before they are used, so a damaged or
hostile one costs an error, not memory or time. The format: github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, cast

import gguf
import numpy as np
from numpy.typing import NDArray

from agent.errors import CheckpointError
from agent.files.foreign import MIB, open_file
from agent.models.safetensors_file import Floats, from_bfloat16

Value = bool | int | float | str | list[str] | NDArray[Any]

METADATA_BYTES: Final = 256 * MIB
"""All that stands before the tensors. A vocabulary of 260,000 tokens with its merges takes 15 MB."""
MOST_STRINGS: Final = 2_000_000
"""In all lists together."""
MOST_VALUES: Final = 10_000
MOST_TENSORS: Final = 100_000
MOST_DIMENSIONS: Final = 4
_VERSIONS: Final = (2, 3)
_STRING: Final = 8
_ARRAY: Final = 9
_SCALARS: Final = {
    **dict(enumerate(("<u1", "<i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?"))),
    **dict(enumerate(("<u8", "<i8", "<f8"), start=10)),
}
"""The format's number of a type of value → numpy's name of it."""
_AGAIN: Final = "copy or download the file again"


@dataclass(frozen=True)
class Tensor:
    """Where a tensor is in the file, and how it is stored."""

    shape: tuple[int, ...]
    """Rows first, as numpy has it; the file says it the other way round."""
    kind: gguf.GGMLQuantizationType
    place: int
    """Of its first byte in the file."""
    size: int
    """Bytes."""


@dataclass(frozen=True)
class GgufFile:
    """A file whose tensors all are within it."""

    path: Path
    metadata: Mapping[str, Value]
    tensors: Mapping[str, Tensor]

    def text(self, key: str) -> str | None:
        """A text of the metadata; None where it isn't there.

        Raises:
            CheckpointError: it is something else.
        """
        value = self.metadata.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(f"its {key} is not text")

    def number(self, key: str) -> int | float | None:
        """A number of the metadata; None where it isn't there.

        Raises:
            CheckpointError: it is something else, or not finite.
        """
        value = self.metadata.get(key)
        if value is None:
            return None
        if isinstance(value, bool | str | list | np.ndarray) or not math.isfinite(value):
            raise self.wrong(f"its {key} is not a number")
        return value

    def flag(self, key: str) -> bool | None:
        """A yes or no of the metadata; None where it isn't there, or is something else."""
        value = self.metadata.get(key)
        return value if isinstance(value, bool) else None

    def read(self, name: str) -> Floats:
        """One tensor, dequantized.

        Raises:
            CheckpointError: it isn't there or cannot be read, gguf cannot dequantize it, or it holds no finite numbers.
        """
        tensor = self.tensors.get(name)
        if tensor is None:
            raise self.wrong(f"it has no tensor {name}")
        try:
            with open_file(self.path) as file:
                file.seek(tensor.place)
                content = file.read(tensor.size)
        except OSError as error:
            raise CheckpointError(f"{self.path} cannot be read: {error.strerror or error}; {_AGAIN}") from error
        if len(content) != tensor.size:
            raise self.wrong(f"it ends inside the tensor {name}")
        numbers = _floats(content, tensor)
        if numbers is None:
            raise CheckpointError(
                f"{self.path} stores {name} as {tensor.kind.name}, which the library gguf does not dequantize; use a "
                "file in F16, BF16, Q8_0, Q4_0, Q4_1 or Q2_K to Q6_K"
            )
        if not np.isfinite(numbers).all():
            raise self.wrong(f"its tensor {name} has values that are not finite")
        return numbers

    def wrong(self, why: str) -> CheckpointError:
        """The error for a file that isn't as it should be."""
        return CheckpointError(f"{self.path} cannot be used: {why}; {_AGAIN}")


def open_gguf(path: Path) -> GgufFile:
    """Read what a file says of itself, and where its tensors are.

    Raises:
        CheckpointError: it cannot be read, is no GGUF, or is damaged.
    """
    try:
        with open_file(path) as file:
            header = _Header(file, path)
            return header.read()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}; name a GGUF file") from error


def _floats(content: bytes, tensor: Tensor) -> Floats | None:
    """The numbers of a tensor; None where the library cannot dequantize its kind."""
    if tensor.kind == gguf.GGMLQuantizationType.F32:
        return np.frombuffer(content, "<f4").reshape(tensor.shape)
    if tensor.kind == gguf.GGMLQuantizationType.BF16:
        return from_bfloat16(np.frombuffer(content, "<u2")).reshape(tensor.shape)
    packed = np.frombuffer(content, np.uint8).reshape(*tensor.shape[:-1], -1)
    try:
        numbers: Any = gguf.quants.dequantize(packed, tensor.kind)
    except NotImplementedError:
        return None
    return cast(Floats, numbers.reshape(tensor.shape))


class _Header:
    """Takes a file's head apart, from its first byte on."""

    def __init__(self, file: BufferedReader, path: Path) -> None:
        self._file = file
        self._path = path
        self._size = file.seek(0, 2)
        self._left = min(self._size, METADATA_BYTES)
        self._strings = 0
        file.seek(0)

    def read(self) -> GgufFile:
        if self._size < 24 or self._take(4) != b"GGUF":
            raise CheckpointError(f"{self._path} is not a GGUF file; name one that llama.cpp reads")
        version, tensors, values = struct.unpack("<IQQ", self._take(20))
        if version not in _VERSIONS:
            raise CheckpointError(
                f"{self._path} is GGUF version {version}; only versions 2 and 3 (little-endian) are read: "
                "use a newer file"
            )
        if tensors > MOST_TENSORS or values > MOST_VALUES:
            raise self._wrong(f"it claims {tensors:,} tensors and {values:,} values")
        metadata: dict[str, Value] = {}
        for _ in range(values):
            key = self._string()
            metadata[key] = self._value(self._number("<u4"))
        table = [self._entry() for _ in range(tensors)]
        return GgufFile(self._path, metadata, self._placed(table, metadata.get("general.alignment", 32)))

    def _placed(self, table: list[tuple[str, Tensor]], alignment: object) -> dict[str, Tensor]:
        """The tensors at their places in the file."""
        if not isinstance(alignment, int) or isinstance(alignment, bool) or not 1 <= alignment <= MIB:
            raise self._wrong("its general.alignment is impossible")
        start = -(-self._file.tell() // alignment) * alignment
        placed: dict[str, Tensor] = {}
        for name, tensor in table:
            if name in placed:
                raise self._wrong(f"it has two tensors {name}")
            place = start + tensor.place
            if place + tensor.size > self._size:
                raise self._wrong(
                    f"its tensor {name} would end at byte {place + tensor.size:,}, and the file has {self._size:,}"
                )
            placed[name] = Tensor(tensor.shape, tensor.kind, place, tensor.size)
        return placed

    def _entry(self) -> tuple[str, Tensor]:
        """One line of the table of tensors; its place counts from the end of the table."""
        name = self._string()
        dimensions = self._number("<u4")
        if not 1 <= dimensions <= MOST_DIMENSIONS:
            raise self._wrong(f"its tensor {name} has {dimensions} dimensions")
        shape = tuple(self._number("<u8") for _ in range(dimensions))[::-1]
        kind, place = self._number("<u4"), self._number("<u8")
        try:
            known = gguf.GGMLQuantizationType(kind)
            block, bytes_of_block = gguf.GGML_QUANT_SIZES[known]
        except (ValueError, KeyError) as error:
            raise self._wrong(f"its tensor {name} is of the unknown type {kind}") from error
        if shape[-1] % block or min(shape) < 1:
            raise self._wrong(f"its tensor {name} of shape {shape} cannot be stored as {known.name}")
        return name, Tensor(shape, known, place, math.prod(shape) // block * bytes_of_block)

    def _value(self, kind: int) -> Value:
        if kind in _SCALARS:
            return np.frombuffer(self._take(np.dtype(_SCALARS[kind]).itemsize), _SCALARS[kind])[0].item()
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            raise self._wrong(f"it has a value of the unknown type {kind}")
        of, count = self._number("<u4"), self._number("<u8")
        if of in _SCALARS:
            return np.frombuffer(self._take(count * np.dtype(_SCALARS[of]).itemsize), _SCALARS[of])
        self._strings += count
        if of != _STRING or self._strings > MOST_STRINGS:
            raise self._wrong(f"it has a list of {count:,} values of type {of}")
        return [self._string() for _ in range(count)]

    def _string(self) -> str:
        try:
            return self._take(self._number("<u8")).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._wrong("a text in it is not UTF-8") from error

    def _number(self, kind: str) -> int:
        return int.from_bytes(self._take(int(kind[-1])), "little")

    def _take(self, size: int) -> bytes:
        """The next bytes, where there are enough."""
        if size > self._left:
            raise self._wrong(f"it claims {size:,} bytes where {self._left:,} are left for its metadata")
        content = self._file.read(size)
        if len(content) != size:
            raise self._wrong("it ends inside its metadata")
        self._left -= size
        return content

    def _wrong(self, why: str) -> CheckpointError:
        return CheckpointError(f"{self._path} is damaged: {why}; {_AGAIN}")
