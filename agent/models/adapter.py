"""A LoRA adapter in peft's form, merged into the weights of its model: W + scale * B @ A.

Only what peft does with the options that are read here is done; an adapter that says anything else is refused.
"""

import hashlib
import json
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from agent.errors import CheckpointError
from agent.files.foreign import MIB, open_file, read_file, read_text
from agent.models.safetensors_file import Floats, TensorEntry, open_safetensors
from agent.models.shape import LINEAR, DecoderShape
from agent.models.weights import ModelWeights

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"
_CONFIG_BYTES: Final = MIB
_READ: Final = frozenset({"r", "lora_alpha", "use_rslora", "alpha_pattern", "peft_type"})
_OF_TRAINING: Final = frozenset(
    {
        *("base_model_name_or_path", "inference_mode", "lora_dropout", "peft_version"),
        *("qalora_group_size", "rank_pattern", "revision", "target_modules", "task_type", "megatron_core"),
        *("exclude_modules", "layers_to_transform", "layers_pattern", "loftq_config", "eva_config", "corda_config"),
        *("auto_mapping", "runtime_config", "ensure_weight_tying"),
    }
)
"""Options that say what was trained and how, which the tensors themselves show; they change nothing of a merge."""
_STARTS: Final[tuple[object, ...]] = (True, False, None, "gaussian", "orthogonal", "eva")
"""Of an adapter that left its model's own weights as they were; others (pissa, olora, …) changed these, too."""
_NONE: Final[tuple[object, ...]] = (None, False, "none", [], {}, "")
_TENSOR: Final = re.compile(r"base_model\.model\.(model\.layers\.\d+\.[a-z_]+\.[a-z_]+)\.lora_([AB])\.weight", re.ASCII)
_PLAIN_NAME: Final = re.compile(r"[\w.]+", re.ASCII)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoraAdapter:
    """What is added to the matrices of a model."""

    folder: Path
    base: str
    """The model that it was trained for, as it says."""
    pairs: Mapping[str, tuple[TensorEntry, TensorEntry, float]]
    """The hub's name of a matrix → A [rank, in], B [out, rank], and by how much their product is multiplied."""
    sha256: str
    """Of both files."""


@dataclass(frozen=True)
class MergedWeights:
    """The weights of a model with an adapter in them."""

    weights: ModelWeights
    adapter: LoraAdapter

    @property
    def shape(self) -> DecoderShape:
        return self.weights.shape

    def read(self, name: str) -> Floats:
        numbers = self.weights.read(name)
        if (pair := self.adapter.pairs.get(name)) is None:
            return numbers
        inner, outer, scale = pair
        added = outer.read() @ inner.read()
        added *= scale
        added += numbers
        return added


def merged(weights: ModelWeights, adapter: LoraAdapter, *, name: str) -> MergedWeights:
    """Put an adapter into the weights of a model.

    Where the adapter says that it is of a model of another name, and fits all the same, a warning is logged.

    Args:
        weights: of the model.
        adapter: that was trained for it.
        name: of the model.

    Raises:
        CheckpointError: it changes matrices that the model does not have, or that are of another shape there.
    """
    shapes = weights.shape.tensors()
    for matrix, (inner, outer, _) in adapter.pairs.items():
        if matrix not in shapes:
            raise CheckpointError(
                f"{adapter.folder} changes {matrix}, which {name} does not have; name the model that it was trained "
                f"for{_said(adapter.base)}"
            )
        if (outer.shape[0], inner.shape[1]) != shapes[matrix]:
            raise CheckpointError(
                f"{adapter.folder} changes a matrix {matrix} of {outer.shape[0]} x {inner.shape[1]}, and that of "
                f"{name} is {' x '.join(map(str, shapes[matrix]))}; name the model that it was trained for"
                f"{_said(adapter.base)}"
            )
    if _short(name.rpartition("/")[2]) not in _short(adapter.base):
        _log.warning(
            "the adapter in %s says that it is of %r; it is merged into %s", adapter.folder, adapter.base[:200], name
        )
    return MergedWeights(weights, adapter)


def open_adapter(folder: Path) -> LoraAdapter:
    """Read an adapter's options, and where its matrices are.

    Raises:
        CheckpointError: it is missing or damaged, or has options that are not merged.
    """
    path = folder / CONFIG
    try:
        said: Any = json.loads(read_text(path, most=_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise CheckpointError(
            f"{path} cannot be read ({why}); name the folder of an adapter that peft saved"
        ) from error
    if not isinstance(said, dict):
        raise CheckpointError(f"{path} is not a JSON object; name the folder of an adapter that peft saved")
    options = cast(dict[str, Any], said)
    _refuse_others(options, path)
    pairs = {
        matrix: (inner, outer, _scale(options, matrix, inner.shape[0], path))
        for matrix, (inner, outer) in _pairs(folder / WEIGHTS).items()
    }
    return LoraAdapter(folder, str(options.get("base_model_name_or_path") or ""), pairs, _hash(folder))


def _refuse_others(options: Mapping[str, Any], path: Path) -> None:
    if options.get("peft_type") != "LORA":
        raise CheckpointError(
            f"{path} is of an adapter of type {str(options.get('peft_type'))[:40]}; Cairn merges only LORA"
        )
    for key, value in options.items():
        plain = _STARTS if key == "init_lora_weights" else _NONE
        if key not in _READ | _OF_TRAINING and value not in plain:
            raise CheckpointError(
                f"{path} says {key[:60]} = {str(value)[:60]}, which Cairn does not merge; merge it with peft "
                "(merge_and_unload) and name the model that comes out"
            )


def _pairs(path: Path) -> dict[str, tuple[TensorEntry, TensorEntry]]:
    found: dict[str, dict[str, TensorEntry]] = {}
    for name, entry in open_safetensors(path).items():
        match = _TENSOR.fullmatch(name)
        if match is None or match[1].split(".", 3)[3] not in LINEAR or len(entry.shape) != 2:
            raise CheckpointError(
                f"{path} has a tensor {name[:120]!r}, which is not one of the two matrices that change a linear layer "
                f"of a model ({', '.join(LINEAR)}); merge it with peft and name the model that comes out"
            )
        found.setdefault(f"{match[1]}.weight", {})[match[2]] = entry
    if not found:
        raise CheckpointError(f"{path} changes nothing: it has no tensors; train the adapter again")
    for matrix, pair in found.items():
        if set(pair) != {"A", "B"} or not pair["A"].shape[0] == pair["B"].shape[1] > 0:
            raise CheckpointError(f"{path} is damaged: the two matrices of {matrix} do not fit; copy the folder again")
    return {matrix: (pair["A"], pair["B"]) for matrix, pair in found.items()}


def _scale(options: Mapping[str, Any], matrix: str, rank: int, path: Path) -> float:
    """By how much a product is multiplied: alpha / rank, or alpha / sqrt(rank) where it says rslora."""
    alpha: Any = options.get("lora_alpha", 8)
    module = matrix.removesuffix(".weight")
    patterns: Any = options.get("alpha_pattern") or {}
    if not isinstance(patterns, dict):
        raise CheckpointError(f"{path} has an alpha_pattern that is not an object; copy the folder again")
    for pattern, own in cast(dict[str, Any], patterns).items():
        if not _PLAIN_NAME.fullmatch(pattern):
            raise CheckpointError(
                f"{path} has an alpha_pattern {pattern[:60]!r}; names of modules are read there, and no patterns: "
                "merge it with peft and name the model that comes out"
            )
        if module == pattern or module.endswith(f".{pattern}"):
            alpha = own
            break
    if not isinstance(alpha, int | float) or isinstance(alpha, bool) or not math.isfinite(alpha):
        raise CheckpointError(
            f"{path} says lora_alpha = {str(alpha)[:60]}, which is not a number; copy the folder again"
        )
    return alpha / (math.sqrt(rank) if options.get("use_rslora") else rank)


def _hash(folder: Path) -> str:
    try:
        found = hashlib.sha256(read_file(folder / CONFIG, most=_CONFIG_BYTES))
        with open_file(folder / WEIGHTS) as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise CheckpointError(
            f"{error.filename} cannot be read: {error.strerror or error}; copy the folder again"
        ) from error
    return found.hexdigest()


def _short(name: str) -> str:
    """What is compared of names of models: letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _said(base: str) -> str:
    return f" ({base[:200]!r}, as it says)" if base else ""
