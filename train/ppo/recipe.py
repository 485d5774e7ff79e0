"""The recipe of a PPO run (`kind = "ppo"`): that of `train.rl.recipe` with other learning, and nothing else new."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from train.common.recipe_files import read_model
from train.rl.recipe import Learning, RlRecipe, RolloutSettings

_OTHERS = ("divide_by_std", "resample", "resample_patience", "old", "credit")


class PpoLearning(Learning):
    """Proximal policy optimisation (1707.06347) with a critic, and the KL penalty in the reward (2203.02155).

    Clips, over-long handling and the KL weight are `Learning`'s. What only groups have is refused.
    """

    name: Literal["ppo"]  # pyright: ignore[reportIncompatibleVariableOverride] - an algorithm that TRL has not
    gamma: float = Field(default=1.0, gt=0, le=1)
    """Discount of a policy token."""
    lam: float = Field(default=1.0, ge=0, le=1)
    """Weight of longer returns in the advantage; 1: the return itself minus the value."""
    whiten: bool = True
    """Whether a step's advantages are brought to mean 0 and deviation 1."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k1"
    """Of the penalty in the reward."""
    critic_lr: float = Field(gt=0)
    """Constant, after the same warm-up as the policy's rate."""
    critic_epochs_first: int = Field(default=0, ge=0)
    """Times that the critic alone goes through the first batch, before the policy moves at all."""
    value_clip: float = Field(default=0.2, ge=0)
    """How far a value may move in a step before its loss no longer falls; 0: anywhere."""

    @model_validator(mode="after")
    def _has_no_groups(self) -> Self:
        if wrong := sorted(self.model_fields_set & set(_OTHERS)):
            raise ValueError(f"PPO has a critic in the place of groups: leave out {', '.join(wrong)}")
        return self

    @property
    def level(self) -> Literal["token", "sequence"]:
        return self.loss or "token"


class PpoRollout(RolloutSettings):
    """As any, but a question may have a single rollout."""

    group: int = Field(default=1, ge=1)


class PpoRecipe(RlRecipe):
    """PPO from a checkpoint in the hub's form, over the same rollouts as `cairn train rl`."""

    kind: Literal["ppo"]  # pyright: ignore[reportIncompatibleVariableOverride] - another command reads it
    learning: PpoLearning  # pyright: ignore[reportIncompatibleVariableOverride] - fixed once read
    rollout: PpoRollout  # pyright: ignore[reportIncompatibleVariableOverride] - fixed once read

    @model_validator(mode="after")
    def _has_no_teacher(self) -> Self:
        if self.teacher is not None:
            raise ValueError("[teacher] is for `cairn train rl`: leave it out")
        return self


def read_ppo_recipe(path: Path, *, start: str | None = None) -> PpoRecipe:
    """Read a recipe.

    Args:
        path: of the TOML file.
        start: a checkpoint in the place of the recipe's own.

    Raises:
        SetupError: the file is missing, no TOML, or has a wrong or unknown key; the sentence names each.
    """
    return read_model(path, PpoRecipe, start=start)
