"""Weights in shares, by FSDP2 through accelerate: on CPUs as on GPUs, with whole weights for the engines that sample.

Each process holds its share of the weights, their gradients and moments. An engine of this program needs all weights:
each process then holds a copy of the model, too, which is brought up to date before every batch of rollouts.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final, cast

import torch
from accelerate import PartialState
from accelerate.utils import DistributedType, parse_flag_from_env
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.fsdp import OffloadPolicy
from torch.distributed.tensor import DTensor

from agent.errors import SetupError
from train.rl.recipe import RlRecipe

_SAMPLES_FROM_A_COPY: Final = ("transformers", "embedded")


def is_requested() -> bool:
    """Whether the launcher of this process wants FSDP."""
    return parse_flag_from_env("ACCELERATE_USE_FSDP")


def share_on_cpus() -> None:
    """Let accelerate share weights between CPUs where the launcher wants FSDP; call it before an Accelerator is made.

    accelerate does so for accelerators alone. On CPUs it would leave a copy of everything to every process, silently;
    but all that FSDP2 needs is there: gloo gathers weights and adds gradients.
    """
    state: dict[str, Any] = PartialState._shared_state
    if is_requested() and state.get("distributed_type") == DistributedType.MULTI_CPU:
        state["distributed_type"] = DistributedType.MULTI_GPU  # of which AcceleratorState makes FSDP; devices stay CPUs


def keep_on_cpus(plugin: Any) -> None:
    """Where weights are on CPUs they need not be offloaded to one, which wants memory that a GPU can reach."""
    if not torch.cuda.is_available():
        plugin.cpu_offload = OffloadPolicy()


def check_shares(recipe: RlRecipe, plugin: Any, *, zero3: bool, nccl: bool) -> None:
    """Refuse what cannot be trained or sampled from shares of the weights.

    Args:
        recipe: of the run.
        plugin: accelerate's, of FSDP; None without it.
        zero3: whether DeepSpeed's third stage shares the weights.
        nccl: whether TRL sends the weights to a vLLM server; it gathers them itself.

    Raises:
        SetupError: the sentence says what to take.
    """
    if plugin is None and not zero3:
        return
    whole = "launch without FSDP and without DeepSpeed's third stage"
    if plugin is not None and plugin.fsdp_version != 2:
        raise SetupError("weights are shared by FSDP2 alone: write fsdp_version: 2 in the accelerate config")
    engine, copies = recipe.rollout.engine, () if zero3 else _SAMPLES_FROM_A_COPY
    if not nccl and engine not in copies:
        allowed = " or ".join([*map(repr, copies), "'vllm-server' on GPUs"])
        raise SetupError(
            f"every process holds a share of the weights, and the engine {engine!r} needs them whole: take the engine "
            f"{allowed}, or {whole}"
        )
    if recipe.adapter is not None and nccl:
        raise SetupError(
            "an adapter in shares has no way to a vLLM server: take the engine 'transformers' or 'embedded', leave out "
            f"[adapter], or {whole}"
        )
    if recipe.learning.credit is not None and recipe.learning.credit.information_gain is not None:
        raise SetupError(
            f"information gain is computed where each process holds the whole model: leave it out, or {whole}"
        )


class WholeCopy:
    """A model beside the shares of it: what an engine of this process samples with."""

    def __init__(self, model: Any) -> None:
        """Copy a model.

        Args:
            model: with its adapter, before it is shared out.
        """
        self._model: Any = deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def of(self, shares: Any, *, device: torch.device) -> Any:
        """The copy with the weights of a model whose shares the processes hold; all must call it at the same time.

        Weights come one after another, so no more than the copy and one of them are in memory.

        Args:
            shares: of the same kind.
            device: where the copy lies from now on.
        """
        self._model.to(device)
        held: Mapping[str, torch.Tensor] = shares.state_dict()
        done: set[int] = set()
        for name, weight in self._model.state_dict().items():
            if weight.data_ptr() not in done:  # what two layers share comes once
                done.add(weight.data_ptr())
                weight.copy_(_whole(held[name]))
        return self._model


def give_start(reference: Any, start: Any) -> None:
    """Put the start's weights into a model that is in shares; all processes must call it at the same time.

    TRL has read it from the folder of the start's model: without the adapter, where the start is one.

    Args:
        reference: of TRL's, in shares.
        start: whole.
    """
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    first = PartialState().is_main_process
    set_model_state_dict(reference, start.state_dict() if first else {}, options=options)


def _whole(share: torch.Tensor) -> torch.Tensor:
    return cast(torch.Tensor, share.full_tensor()) if isinstance(share, DTensor) else share
