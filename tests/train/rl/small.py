"""Small runs for the tests: the shipped checkpoint on small worlds, a few rollouts a step."""

import importlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.shipped import HUB
from train.rl.recipe import RlRecipe

PAIR = {"prompts": 1, "group": 2}
"""Rollouts of a step, for tests that ask what a run does around it."""
WITHOUT = (
    "answers are no longer closed",
    "every rollout gets the same reward",
    "rollouts run into their length limit",
    "the policy writes noise",
)
"""Rules that watch a policy which can say something: one of random weights breaks them."""


def recipe(steps: int = 2, **changes: Mapping[str, Any] | object) -> RlRecipe:
    """A recipe whose rewards differ inside of groups: length costs a little. Tables are merged, key by key.

    A rollout reads four passages at most, which halves what a step costs.
    """
    said: dict[str, Any] = {
        "kind": "rl",
        "name": "small",
        "start": str(HUB),
        "protocols": ("multisearch",),
        "seed": 3,
        "steps": steps,
        "data": {"people": 30, "questions_per_world": 6},
        "rollout": {"prompts": 2, "group": 3, "rounds": 1, "passages": 6, "policy_tokens": 128, "answer_tokens": 48},
        "reward": ({"name": "outcome"},),
        "learning": {"name": "grpo", "overlong": {"longest": 256, "buffer": 256, "penalty": 0.5}},
        "optimizer": {"lr": 1e-4, "micro_batches": 2},
        "report": {"save_every_steps": 1},
    }
    for name, change in changes.items():
        said[name] = {**said.get(name, {}), **change} if isinstance(change, Mapping) else change
    return RlRecipe.model_validate(said)


def brief(start: Path | str, steps: int = 2, **changes: Mapping[str, Any] | object) -> RlRecipe:
    """A recipe for a policy of random weights (`make_hub`), for tests of what a run does around its rollouts.

    It never searches and is never right: what it writes differs in length alone.
    """
    said: dict[str, Any] = {
        "start": str(start),
        "protocols": ("reflect",),
        "data": {"people": 12},
        "rollout": {"policy_tokens": 24, "answer_tokens": 8},
        "learning": {"overlong": {"longest": 24, "buffer": 24, "penalty": 0.5}},
        "optimizer": {"lr": 1e-3},
        "safety": {"without": WITHOUT},
    }
    for name, change in changes.items():
        said[name] = {**said.get(name, {}), **change} if isinstance(change, Mapping) else change
    return recipe(steps, **said)


def hot_checkpoint(folder: Path, *, heat: float = 0.5) -> Path:
    """A copy of the checkpoint that is less sure of everything: its logits are smaller, so its rollouts differ."""
    safetensors: Any = importlib.import_module("safetensors.torch")
    shutil.copytree(HUB, folder)
    weights = safetensors.load_file(folder / "model.safetensors")
    weights["model.norm.weight"] = weights["model.norm.weight"] * heat
    safetensors.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
