"""Adapters (LoRA, through peft): put beside a model's weights, read from a folder, merged, saved. Nothing is trained.

Only plain low-rank matrices are taken: only they can be merged for every engine.
"""

import json
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MethodType
from typing import Any, Final, cast

import torch
from safetensors.torch import load_file
from torch.autograd.function import once_differentiable
from transformers import PreTrainedModel

from agent.errors import SetupError
from agent.files.foreign import read_text
from train.common.recipe import AdapterSettings

CONFIG: Final = "adapter_config.json"
_WEIGHTS: Final = "adapter_model.safetensors"
_STRANGE: Final = ("use_dora", "modules_to_save", "lora_bias", "alora_invocation_tokens", "trainable_token_indices")
"""Settings of adapters that are more than low-rank matrices."""
_MOVES_THE_MODEL: Final = ("pissa", "olora", "corda", "loftq", "lora_ga")
"""Beginnings that change the model's own weights."""
_SETTINGS: Final = (
    *("r", "lora_alpha", "target_modules", "exclude_modules", "rank_pattern", "alpha_pattern", "use_rslora"),
    *("fan_in_fan_out", "layers_to_transform", "layers_pattern"),
)
"""That decide where the matrices are, and what they add."""
_MARK: Final = ".base_layer"
"""What peft puts into the name of a weight that has an adapter beside it."""


@dataclass(frozen=True)
class AdapterFolder:
    """A folder with an adapter alone, in peft's form."""

    folder: Path
    base: str
    """The model that it belongs to: a folder, or a name."""
    rank: int
    alpha: float
    settings: Mapping[str, Any]
    """All that its configuration says."""


def read_adapter(folder: Path) -> AdapterFolder | None:
    """What an adapter's folder says of itself; None where the folder holds no adapter.

    Raises:
        SetupError: its configuration cannot be read, or it is of a kind that cannot be merged.
    """
    path = folder / CONFIG
    if not path.is_file():
        return None
    try:
        said: dict[str, Any] = json.loads(read_text(path))
        kind, rank, alpha = str(said["peft_type"]), int(said["r"]), float(said["lora_alpha"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise SetupError(f"{path} cannot be used: {_one_line(error)}; save the adapter again with peft") from error
    base = said.get("base_model_name_or_path")
    if not base:
        raise SetupError(f"{path} does not name its model: write its folder or name as base_model_name_or_path")
    strange = [name for name in _STRANGE if said.get(name)]
    begins = said.get("init_lora_weights")
    if isinstance(begins, str) and begins.startswith(_MOVES_THE_MODEL):
        strange.append(begins)
    if kind != "LORA" or strange:
        raise SetupError(
            f"{path} is of a kind that cannot be trained here ({strange[0] if strange else kind}): merge it into its "
            "model with peft (merge_and_unload), then start from that model"
        )
    return AdapterFolder(folder, str(base), rank, alpha, said)


def with_new_adapter(model: PreTrainedModel, adapter: AdapterSettings, *, base: str) -> Any:
    """The model with low-rank matrices beside its weights, which add nothing yet.

    Args:
        model: its own weights no longer take gradients.
        adapter: rank, alpha and targets.
        base: how the adapter's folder will name the model.

    Raises:
        SetupError: the model has no such targets.
    """
    from peft import LoraConfig, get_peft_model

    targets: Any = list(adapter.targets) or "all-linear"
    settings = LoraConfig(
        r=adapter.rank,
        lora_alpha=cast(int, adapter.alpha),
        lora_dropout=adapter.dropout,
        target_modules=targets,
        bias="none",
        task_type="CAUSAL_LM",
    )
    _check_targets(model, adapter)
    try:
        with _without_a_warning():
            made: Any = get_peft_model(model, settings)
    except (ValueError, TypeError) as error:
        raise SetupError(f"the adapter does not fit the model: {_one_line(error)}") from error
    made.peft_config["default"].base_model_name_or_path = base
    return _ready(made)


def with_adapter_of(model: PreTrainedModel, said: AdapterFolder, *, dropout: float = 0.0) -> Any:
    """The model with the adapter of a folder, which is trained further.

    Raises:
        SetupError: it belongs to another model, or is damaged.
    """
    from peft import LoraConfig, get_peft_model, set_peft_model_state_dict

    known = {name: said.settings[name] for name in _SETTINGS if said.settings.get(name) is not None}
    try:
        settings = LoraConfig(**known, lora_dropout=dropout, task_type="CAUSAL_LM")
        with _without_a_warning():
            made: Any = get_peft_model(model, settings)
        weights = load_file(said.folder / _WEIGHTS)
        found = set_peft_model_state_dict(made, weights)
        expected = sum(weight.requires_grad for weight in made.parameters())
    except Exception as error:  # readers of weights have errors of their own, with no base in common
        raise SetupError(
            f"the adapter in {said.folder} does not fit {said.base}, or is damaged: {_one_line(error)}"
        ) from error
    if found.unexpected_keys or len(weights) != expected:
        raise SetupError(
            f"the adapter in {said.folder} does not fit {said.base}: it has {len(weights)} matrices, and the model "
            f"layers for {expected}; name its own model in {CONFIG}"
        )
    made.peft_config["default"].base_model_name_or_path = said.base
    return _ready(made)


def merged(model: PreTrainedModel, said: AdapterFolder) -> PreTrainedModel:
    """The model with the adapter of a folder in its own weights.

    Raises:
        SetupError: it belongs to another model, or is damaged.
    """
    made = with_adapter_of(model, said).merge_and_unload()
    return cast(PreTrainedModel, made.requires_grad_(True))


def bare(model: Any) -> PreTrainedModel:
    """The model itself, where it has an adapter with that inside: called, it computes the same."""
    return cast(PreTrainedModel, model.get_base_model() if hasattr(model, "peft_config") else model)


def merged_state(model: Any) -> dict[str, torch.Tensor]:
    """All weights by the names of a model without an adapter; what the adapter adds is in them, summed in float32."""
    inside = bare(model)
    state = cast(torch.nn.Module, inside).state_dict()
    if inside is model:
        return state
    layers: dict[str, Any] = dict(cast(torch.nn.Module, inside).named_modules())
    merged: dict[str, torch.Tensor] = {}
    for name, weight in state.items():
        if ".lora_" in name:
            continue
        owner, _, kind = name.partition(f"{_MARK}.")
        if kind == "weight":
            layer = layers[owner]
            added = [layer.get_delta_weight(active).detach().float() for active in layer.active_adapters]
            weight = torch.stack([weight.float(), *added]).sum(0).to(weight.dtype)
        merged[name.replace(_MARK, "")] = weight
    return merged


def save_adapter(model: Any, folder: Path) -> None:
    """Write the adapter alone into a folder that is there, in peft's form."""
    model.save_pretrained(str(folder), selected_adapters=["default"], save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)  # peft's empty card


def _check_targets(model: PreTrainedModel, adapter: AdapterSettings) -> None:
    """Refuse targets that the model does not have, or that cannot be merged.

    Raises:
        SetupError: the sentence names the layers that there are.
    """
    names = {name.rpartition(".")[2] for name, layer in _linear(model)}
    if unknown := [target for target in adapter.targets if not _has(model, target)]:
        raise SetupError(
            f"the model has no layer {unknown[0]!r} for an adapter; it has {', '.join(sorted(names))}: "
            "change `targets` in [adapter]"
        )
    head = model.get_output_embeddings()
    tied = model.config.get_text_config().tie_word_embeddings
    heads = [name.rpartition(".")[2] for name, layer in model.named_modules() if layer is head]
    if tied and any(target in heads for target in adapter.targets):
        raise SetupError(
            f"{heads[0]} shares its weights with the embeddings, so nothing can be merged into it: take it out of "
            "`targets` in [adapter]"
        )


def _has(model: PreTrainedModel, target: str) -> bool:
    return any(name == target or name.endswith(f".{target}") for name, _ in _linear(model))


def _linear(model: PreTrainedModel) -> Generator[tuple[str, torch.nn.Module]]:
    yield from ((name, layer) for name, layer in model.named_modules() if isinstance(layer, torch.nn.Linear))


def _ready(made: Any) -> Any:
    """A model whose trained weights are float32, however its others are kept, and whose layers waste no pass."""
    for weight in made.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()
    use_low_rank(made)
    return made


@contextmanager
def _without_a_warning() -> Generator[None]:
    """Silence one: peft looks at a property by the name that transformers has given up."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        yield


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


class _LowRank(torch.autograd.Function):
    """From x, its layer's weight and bias, and A and B of the adapter, to x W' + bias + scaling (x A') B'."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        a: torch.Tensor,
        b: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        """Compute rows of any shape [..., in] in the type of `x`; a and b may have another one."""
        rows = x.reshape(-1, x.shape[-1])
        narrow = (rows @ a.to(x.dtype).t()).mul_(scaling)
        out = rows @ weight.t() if bias is None else torch.addmm(bias, rows, weight.t())
        out.addmm_(narrow, b.to(x.dtype).t())
        ctx.save_for_backward(rows, narrow, weight, a, b)
        ctx.scaling, ctx.shape = scaling, x.shape
        return out.view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - what `once_differentiable` gives
        ctx: Any, *grads: torch.Tensor
    ) -> tuple[torch.Tensor | None, None, None, torch.Tensor, torch.Tensor, None]:
        """The gradients of x, a and b; the layer's own weights stay as they are."""
        rows, narrow, weight, a, b = ctx.saved_tensors
        grad = grads[0].to(rows.dtype).reshape(-1, grads[0].shape[-1])
        inner = (grad @ b.to(rows.dtype)).mul_(ctx.scaling)
        of_a, of_b = (inner.t() @ rows).to(a.dtype), (grad.t() @ narrow).to(b.dtype)
        of_x = None
        if ctx.needs_input_grad[0]:
            of_x = (grad @ weight).addmm_(inner, a.to(rows.dtype)).view(ctx.shape)
        return of_x, None, None, of_a, of_b, None


def use_low_rank(model: torch.nn.Module) -> int:
    """Have every linear layer with an adapter of peft's compute this way, where it is a plain one.

    One step of autograd, which reads memory fewer times: peft casts the input for every layer, multiplies a whole
    output by the scaling and adds it. Here the scaling is in the narrow middle, sums are made by the matrix products
    themselves, and layers with one input keep it once.

    Returns:
        How many do.
    """
    from peft.tuners.lora import Linear

    found = [layer for layer in model.modules() if isinstance(layer, Linear) and _is_plain(layer)]
    for layer in found:
        layer.forward = MethodType(_forward, layer)
    return len(found)


def _is_plain(layer: Any) -> bool:
    base = layer.get_base_layer()
    dropped = any(not isinstance(dropout, torch.nn.Identity) for dropout in layer.lora_dropout.values())
    return type(base) is torch.nn.Linear and not base.weight.requires_grad and not dropped and not layer.lora_variant


def _forward(layer: Any, x: torch.Tensor, *said: Any, **also: Any) -> torch.Tensor:
    base, active = layer.get_base_layer(), layer.active_adapters
    if layer.disable_adapters or layer.merged or len(active) != 1 or active[0] not in layer.lora_A:
        return type(layer).forward(layer, x, *said, **also)
    kind = x.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else base.weight.dtype
    weight, bias = base.weight, base.bias
    if weight.dtype != dtype:
        weight, bias = weight.to(dtype), None if bias is None else bias.to(dtype)
    name = active[0]
    a, b = layer.lora_A[name].weight, layer.lora_B[name].weight
    with torch.autocast(kind, enabled=False):
        return _LowRank.apply(x.to(dtype), weight, bias, a, b, layer.scaling[name])
