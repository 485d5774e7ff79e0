"""The models of a PPO run, loaded from its start. Nothing is learned here."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

import torch

from train.common.precision import computes_bf16
from train.models.adapters import bare
from train.models.causal import recompute_layers
from train.models.pretrained import open_pretrained
from train.ppo.recipe import PpoRecipe
from train.ppo.scoring import Critic


@dataclass(frozen=True)
class Models:
    """What is trained, and what it is held against."""

    policy: Any
    """A model of transformers, with its adapter where the recipe has one."""
    critic: Critic
    reference: Any
    """The start as it was; None where no step has a KL weight."""
    parted: bool
    """See `train.models.pretrained.Pretrained`."""


def load_models(recipe: PpoRecipe) -> Models:
    """The start in float32, three times at most: policy, trunk of the critic, reference.

    With an adapter the trunk of the critic has one of its own, too.

    Raises:
        SetupError: it cannot be loaded.
    """
    begun = open_pretrained(recipe.start, adapter=recipe.adapter, bf16=False)
    policy: Any = begun.trained.to("cuda" if torch.cuda.is_available() else "cpu")
    inside = bare(policy)
    device = next(inside.parameters()).device
    critic = Critic(deepcopy(inside.base_model), width=inside.config.get_text_config().hidden_size).to(device)
    reference = deepcopy(policy).requires_grad_(False) if any(weight for _, weight in recipe.learning.kl) else None
    if reference is not None and computes_bf16(recipe.optimizer.bf16, device):
        cast(torch.nn.Module, reference).to(torch.bfloat16)
    if recipe.optimizer.gradient_checkpointing:
        for model in (inside, critic.trunk):
            recompute_layers(model)
    return Models(policy, critic, reference, begun.parted)
