"""A model of which each process of supervised training holds a share (FSDP2).

A process has its share of weights, gradients and moments; a layer's weights are gathered while it computes. Gradients
are averaged over the processes, here as everywhere in FSDP.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MethodType
from typing import Any, Final, cast

import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

from agent.errors import SetupError
from train.common.process_group import ProcessGroup
from train.common.recipe import SftRecipe
from train.models.causal import logits_at
from train.models.pretrained import Pretrained

_METHOD: Final = "logits_at"


def check_sharded(recipe: SftRecipe, processes: int) -> None:
    """Refuse what cannot be trained in shares.

    Raises:
        SetupError: the sentence says what to change.
    """
    if processes < 2:
        raise SetupError("--shard needs processes that hold the shares: add --processes 2 or more")
    if recipe.optimizer.muon_lr:
        raise SetupError("Muon needs whole matrices, and --shard cuts them: write muon_lr = 0 under [optimizer]")
    if recipe.adapter is not None:
        raise SetupError("an adapter is small beside its model: leave out --shard, or train all weights")


@dataclass(frozen=True)
class ShardedModel(Pretrained):
    """A model whose weights lie in shares. All processes must call it at the same time."""

    def logits_at(self, ids: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """As that of a whole model."""
        return getattr(self.model, _METHOD)(ids, places) if self.parted else super().logits_at(ids, places)

    def sentences(self, processes: int) -> list[str]:
        """What each of the processes will need for it, so far as it can be said before the first step."""
        weights = sum(weight.numel() for weight in self.trained.parameters())
        share = 16 * weights / processes / 1e6  # weights, gradients and two moments in float32
        return [
            f"trains {weights:,} parameters in {processes} shares: weights, gradients and optimizer need {share:,.0f} "
            "MB in each process, and one layer and the activations come on top"
        ]

    def whole(self) -> Mapping[str, torch.Tensor]:
        """All weights on the CPU, in the first process; nothing in the others."""
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        return cast(Mapping[str, torch.Tensor], get_model_state_dict(self.trained, options=options))


def share_out(begun: Pretrained, process_group: ProcessGroup, device: torch.device) -> ShardedModel:
    """Keep this process's share of every layer, and of what is around them.

    Args:
        begun: the whole model, the same in all processes.
        process_group: of the run.
        device: where this process computes.
    """
    model: Any = begun.model
    mesh = init_device_mesh(device.type, (process_group.size,))
    for module in list(model.modules()):
        if type(module).__name__ in (model._no_split_modules or ()):
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    setattr(model, _METHOD, MethodType(_logits_of_parts, model))
    register_fsdp_forward_method(model, _METHOD)  # weights are gathered for it as for `forward`
    return ShardedModel(**vars(begun))


def _logits_of_parts(model: Any, ids: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return logits_at(model, ids, places, parted=True)
