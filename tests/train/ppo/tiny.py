"""A policy of a few thousand weights, its recipe, and rows that are made by hand."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from agent.trace.samples import Sample
from train.ppo.learner import Learner
from train.ppo.recipe import PpoRecipe
from train.ppo.scoring import Critic

WORDS = 12
WIDTH = 32


def recipe(learning: dict[str, Any] | None = None, optimizer: dict[str, Any] | None = None) -> PpoRecipe:
    return PpoRecipe.model_validate(
        {
            "kind": "ppo",
            "name": "test",
            "start": "none",
            "protocols": ["cairn"],
            "seed": 1,
            "steps": 10,
            "rollout": {"prompts": 4},
            "reward": [{"name": "outcome"}],
            "learning": {"name": "ppo", "critic_lr": 1e-2, **(learning or {})},
            "optimizer": {"lr": 1e-2, **(optimizer or {})},
        }
    )


def model(seed: int = 0) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType] - its stub leaves the type of a seed out
    shape = Qwen3Config(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        intermediate_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
    )
    return Qwen3ForCausalLM(shape)


def learner(given: PpoRecipe, *, seed: int = 0, reference: bool = False) -> Learner:
    policy = model(seed)
    critic = Critic(deepcopy(policy.base_model), width=WIDTH)
    return Learner(policy, critic, deepcopy(policy) if reference else None, given)


def sample(ids: Sequence[int], mask: Sequence[bool], logprob: float = -1.0) -> Sample:
    return Sample("main", tuple(ids), tuple(mask), tuple(logprob if one else 0.0 for one in mask))
