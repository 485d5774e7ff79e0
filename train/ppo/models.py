"""The models of a PPO run, loaded from its start. Nothing is learned here."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from agent.errors import SetupError
from agent.policies.hub_form import open_hub_form
from train.ppo.recipe import PpoRecipe
from train.ppo.scoring import Critic


@dataclass(frozen=True)
class Models:
    """What is trained, and what it is held against."""

    policy: PreTrainedModel
    critic: Critic
    reference: PreTrainedModel | None
    """The start as it was; None where no step has a KL weight."""


def load_models(recipe: PpoRecipe) -> Models:
    """The start in float32, three times at most: policy, trunk of the critic, reference.

    Raises:
        SetupError: it cannot be loaded.
    """
    folder = open_hub_form(recipe.start).folder
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
        )
    except Exception as error:  # readers of weights have errors of their own, with no base in common
        raise SetupError(f"the start {recipe.start} cannot be loaded: {error}") from error
    policy = cast(PreTrainedModel, loaded.to("cuda" if torch.cuda.is_available() else "cpu"))
    device = next(policy.parameters()).device
    critic = Critic(deepcopy(policy.base_model), width=policy.config.get_text_config().hidden_size).to(device)
    reference = deepcopy(policy).requires_grad_(False) if any(weight for _, weight in recipe.learning.kl) else None
    if reference is not None and recipe.optimizer.bf16:
        cast(torch.nn.Module, reference).to(torch.bfloat16)
    if recipe.optimizer.gradient_checkpointing:
        for model in (policy, cast(Any, critic.trunk)):
            named = "activation_checkpointing_enable"  # older transformers know the other name only
            getattr(model, named if hasattr(model, named) else "gradient_checkpointing_enable")()
    return Models(policy, critic, reference)
