"""Reads and writes safetensors with numpy alone, one tensor at a time, bfloat16 included.

The files may be anyone's: what a header claims is checked against the file before anything is read. The format:
huggingface.co/docs/safetensors.
"""

import json
import math
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from agent.errors import CheckpointError
from agent.files.foreign import MIB, open_file

Floats = NDArray[np.float32]
Stored = Literal["float32", "bfloat16"]

HEADER_BYTES: Final = 64 * MIB
_TYPES: Final = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}
_NAMES: Final[Mapping[Stored, str]] = {"float32": "F32", "bfloat16": "BF16"}
_AGAIN: Final = "copy the folder again"


@dataclass(frozen=True)
class TensorEntry:
    """One tensor of a file."""

    path: Path
    kind: str
    shape: tuple[int, ...]
    place: int
    """Of its first byte in the file."""
    size: int
    """Bytes."""

    def read(self) -> Floats:
        """Its numbers.

        Raises:
            CheckpointError: it cannot be read, or they are not finite.
        """
        try:
            with open_file(self.path) as file:
                file.seek(self.place)
                content = file.read(self.size)
        except OSError as error:
            raise CheckpointError(f"{self.path} cannot be read: {error.strerror or error}; {_AGAIN}") from error
        if len(content) != self.size:
            raise CheckpointError(f"{self.path} ends inside a tensor; {_AGAIN}")
        numbers = np.frombuffer(content, _TYPES[self.kind])
        floats = from_bfloat16(numbers) if self.kind == "BF16" else numbers.astype(np.float32, copy=False)
        if not np.isfinite(floats).all():
            raise CheckpointError(f"{self.path} has values that are not finite; {_AGAIN}")
        return floats.reshape(self.shape)


def open_safetensors(path: Path) -> dict[str, TensorEntry]:
    """The tensors of a file by their names; only its header is read.

    Raises:
        CheckpointError: it cannot be read, or is damaged.
    """
    try:
        with open_file(path) as file:
            size = file.seek(0, 2)
            file.seek(0)
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
            if not 0 < length <= min(size - 8, HEADER_BYTES):
                raise CheckpointError(f"{path} is not a safetensors file, or is cut off; {_AGAIN}")
            said: Any = json.loads(file.read(length))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}; {_AGAIN}") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: its header is not JSON; {_AGAIN}") from error
    if not isinstance(said, dict):
        raise CheckpointError(f"{path} is damaged: its header is not an object; {_AGAIN}")
    fields = cast(dict[str, Any], said)
    return {name: _entry(path, name, of, 8 + length, size) for name, of in fields.items() if name != "__metadata__"}


def write_safetensors(
    path: Path, tensors: Iterable[tuple[str, Floats]], shapes: Mapping[str, tuple[int, ...]], *, stored: Stored
) -> None:
    """Write a file in one go, holding one tensor at a time.

    Args:
        path: of the new file.
        tensors: in the order of `shapes`.
        shapes: name → shape of each.
        stored: as what; bfloat16 rounds to the nearest, ties to even.

    Raises:
        OSError: it cannot be written.
    """
    width = 4 if stored == "float32" else 2
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}  # what transformers looks for
    place = 0
    for name, shape in shapes.items():
        end = place + math.prod(shape) * width
        header[name] = {"dtype": _NAMES[stored], "shape": list(shape), "data_offsets": [place, end]}
        place = end
    said = json.dumps(header, separators=(",", ":")).encode()
    said += b" " * (-len(said) % 8)
    with path.open("xb") as file:
        file.write(struct.pack("<Q", len(said)) + said)
        for (name, shape), (given, numbers) in zip(shapes.items(), tensors, strict=True):
            assert (name, shape) == (given, numbers.shape)
            file.write((to_bfloat16(numbers) if stored == "bfloat16" else numbers.astype("<f4", copy=False)).tobytes())


def from_bfloat16(numbers: NDArray[np.uint16]) -> Floats:
    """float32 from the bits of bfloat16."""
    return (numbers.astype(np.uint32) << 16).view(np.float32)


def to_bfloat16(numbers: Floats) -> NDArray[np.uint16]:
    """The bits of bfloat16, rounded to the nearest, ties to even. The numbers are finite."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    return ((bits + (np.uint32(0x7FFF) + ((bits >> 16) & 1))) >> 16).astype(np.uint16)


def _entry(path: Path, name: str, said: Any, start: int, file_bytes: int) -> TensorEntry:
    match said:
        case {"dtype": str(kind), "shape": [*sizes], "data_offsets": [int(begin), int(end)]}:
            pass
        case _:
            raise CheckpointError(f"{path} is damaged: its header has no valid entry for {_shown(name)}; {_AGAIN}")
    if kind not in _TYPES:
        raise CheckpointError(
            f"{path} stores {_shown(name)} as {_shown(kind)}, and {', '.join(_TYPES)} are read; save it in one of these"
        )
    if len(sizes) > 4 or not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in sizes):
        raise CheckpointError(f"{path} is damaged: the shape of {_shown(name)} is none; {_AGAIN}")
    size = math.prod(sizes) * np.dtype(_TYPES[kind]).itemsize
    if not (0 <= begin <= end <= file_bytes - start and end - begin == size):
        raise CheckpointError(f"{path} is damaged or cut off: {_shown(name)} is not within it; {_AGAIN}")
    return TensorEntry(path, kind, tuple(sizes), start + begin, size)


def _shown(name: str) -> str:
    """A name that a file gave, short enough for a sentence."""
    return repr(re.sub(r"\s+", " ", name)[:100])
