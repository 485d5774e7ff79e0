"""How reinforcement learning updates weights, as a recipe says it, and the rate of each update. Nothing runs here."""

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class RlOptimizer(BaseModel):
    """AdamW, and how a batch of rollouts becomes updates."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    lr: float = Field(gt=0)
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Of the rate after the warm-up."""
    warmup_steps: int = Field(default=0, ge=0)
    """Updates in which the rate rises by equal steps; the last of them has the whole rate."""
    weight_decay: float = Field(default=0.0, ge=0)
    betas: tuple[float, float] = (0.9, 0.99)
    clip: float = Field(default=1.0, gt=0)
    """Of the gradient's norm."""
    minibatches: int = Field(default=1, ge=1)
    """Updates from one batch of rollouts, each from its share of the groups."""
    epochs: int = Field(default=1, ge=1)
    """Over one batch."""
    micro_batches: int = Field(default=4, ge=1)
    """In which the rows of an update are computed, alike in length; more need less memory."""
    bf16: bool = False
    """Compute in bfloat16; then the log-probabilities of rollouts agree less well."""
    gradient_checkpointing: bool = False


def warmed(optimizer: RlOptimizer, update: int) -> float:
    """The warm-up's share of the rate in an update, counted from 0: above 0, so that no rollouts are wasted."""
    return min(1.0, (update + 1) / max(1, optimizer.warmup_steps))


def rate(optimizer: RlOptimizer, update: int, *, updates: int) -> float:
    """The rate of an update as a share of `lr`.

    Args:
        optimizer: of the recipe.
        update: counted from 0.
        updates: of the whole run.
    """
    warm = optimizer.warmup_steps
    done = min(1.0, max(0, update - warm) / max(1, updates - warm))
    left = {"constant": 1.0, "linear": 1 - done, "cosine": 0.5 * (1 + math.cos(math.pi * done))}
    return warmed(optimizer, update) * left[optimizer.schedule]
