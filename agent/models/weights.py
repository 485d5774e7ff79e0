"""The weights of a decoder, tensor by tensor, by the hub's names: from a GGUF, or from a folder in the hub's form."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, cast

import numpy as np

from agent.errors import CheckpointError
from agent.files.foreign import read_text
from agent.models.gguf_file import GgufFile
from agent.models.safetensors_file import Floats, TensorEntry, open_safetensors
from agent.models.shape import HEAD, DecoderShape, gguf_name, shape_of_config, shape_of_gguf

_SAID: Final = 5
"""Names in a sentence, at most."""


class ModelWeights(Protocol):
    """What a converter reads."""

    @property
    def shape(self) -> DecoderShape: ...

    def read(self, name: str) -> Floats:
        """One tensor, by the hub's name.

        Raises:
            CheckpointError: it cannot be read.
        """
        ...


@dataclass(frozen=True)
class GgufWeights:
    """The weights in a GGUF, as the hub's form has them."""

    file: GgufFile
    shape: DecoderShape

    def read(self, name: str) -> Floats:
        numbers = self.file.read(gguf_name(name))
        heads = permuted_heads(self.shape, name)
        return numbers if heads is None else unpermute(numbers, heads)


@dataclass(frozen=True)
class HubWeights:
    """The weights in a folder of safetensors."""

    folder: Path
    shape: DecoderShape
    entries: Mapping[str, TensorEntry]

    def read(self, name: str) -> Floats:
        return self.entries[name].read()


def gguf_weights(file: GgufFile) -> GgufWeights:
    """Check that a GGUF holds the tensors that its metadata imply, and no others.

    Raises:
        CheckpointError: it does not; or it is of a kind that is not converted.
    """
    shape = shape_of_gguf(file)
    expected = {gguf_name(name): size for name, size in shape.tensors().items()}
    _compare(expected, {name: tensor.shape for name, tensor in file.tensors.items()}, str(file.path))
    return GgufWeights(file, shape)


def hub_weights(folder: Path) -> HubWeights:
    """Check that a folder holds the tensors that its config.json implies, and no others.

    Raises:
        CheckpointError: it does not; or it is of a kind that is not converted.
    """
    path = folder / "config.json"
    try:
        config: Any = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); name a checkpoint in the hub's form") from error
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} is not a JSON object; name a checkpoint in the hub's form")
    shape = shape_of_config(cast(dict[str, Any], config), str(path))
    entries: dict[str, TensorEntry] = {}
    for file in sorted(folder.glob("model*.safetensors")):
        entries |= open_safetensors(file)
    for name in [name for name in entries if name.endswith("rotary_emb.inv_freq") or (shape.tied and name == HEAD)]:
        del entries[name]  # computed from the config; a second copy of the embeddings
    _compare(shape.tensors(), {name: entry.shape for name, entry in entries.items()}, str(folder))
    return HubWeights(folder, shape, entries)


def permuted_heads(shape: DecoderShape, name: str) -> int | None:
    """How many heads a tensor has whose rows llama.cpp keeps in another order; None for all other tensors.

    For Llama it turns neighbouring numbers of a head by a position, where the hub's form turns the two halves.
    """
    if shape.kind != "llama":
        return None
    module = name.rpartition(".")[0]
    return shape.heads if module.endswith(".q_proj") else shape.kv_heads if module.endswith(".k_proj") else None


def unpermute(numbers: Floats, heads: int) -> Floats:
    """From llama.cpp's order of rows to the hub's."""
    pairs = numbers.reshape(heads, numbers.shape[0] // heads // 2, 2, *numbers.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(numbers.shape)


def permute(numbers: Floats, heads: int) -> Floats:
    """From the hub's order of rows to llama.cpp's."""
    halves = numbers.reshape(heads, 2, numbers.shape[0] // heads // 2, *numbers.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(numbers.shape)


def _compare(expected: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[int, ...]], where: str) -> None:
    if lacks := [name for name in expected if name not in found]:
        raise CheckpointError(f"{where} lacks {_listed(lacks)}; copy or download it again")
    if more := [name for name in found if name not in expected]:
        raise CheckpointError(
            f"{where} has tensors that its kind of model does not ({_listed(more)}), so it would be converted wrongly; "
            "take the model as it was published"
        )
    if wrong := [name for name, size in expected.items() if found[name] != size]:
        name = wrong[0]
        raise CheckpointError(
            f"{where} says of itself that {name} has the shape {expected[name]}, and it has {found[name]}; "
            "copy or download it again"
        )


def _listed(names: list[str]) -> str:
    said = ", ".join(name[:80] for name in names[:_SAID])
    return f"{said} and {len(names) - _SAID:,} more" if len(names) > _SAID else said
