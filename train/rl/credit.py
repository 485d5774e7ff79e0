"""Credit for turns: the settings `[learning.credit]` of a recipe, each from its paper. All are off by default."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class InformationGain(BaseModel):
    """IGPO (2510.14967): each turn's reward is how much likelier its observation made the gold answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    discount: float = Field(default=1.0, gt=0, le=1)
    """Of what a later turn gains, for each turn between."""


class TreeSettings(BaseModel):
    """Tree-GRPO (2509.21240): the rollouts of a question share whole turns, and are compared inside their tree, too."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trees: int = Field(default=2, ge=1)
    """Of each question; each begins with one rollout (the paper's M)."""
    expansions: int = Field(default=3, ge=1)
    """Turns of a tree from which it grows at the same time (N)."""
    rounds: int = Field(default=1, ge=1)
    """Times that it does so (L)."""

    @property
    def rollouts(self) -> int:
        """Of each question."""
        return self.trees * (1 + self.expansions * self.rounds)


class CreditSettings(BaseModel):
    """What is learned beside a rollout's reward; docs/training.md has the formulas."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first_hit: float = Field(default=0.0, ge=0, lt=1)
    """TSPO's first-occurrence reward (2601.22776): what a rollout with a wrong answer gets in its turns up to the one
    whose passages first hold a gold answer. 0: nothing."""
    keep_likelihood: float = Field(default=0.0, ge=0)
    """Weight of LLDS (2512.04220) in the loss: tokens whose advantage is 0 or more must not become less likely than
    they were when they were sampled. 0: no such term."""

    information_gain: InformationGain | None = None
    """Left out: none."""

    tree: TreeSettings | None = None
    """Left out: the rollouts of a question have nothing in common but the question."""

    @model_validator(mode="after")
    def _one_decides(self) -> Self:
        if bool(self.first_hit) + bool(self.information_gain) + bool(self.tree) > 1:
            raise ValueError("`first_hit`, `information_gain` and `tree` each make the advantages: choose one of them")
        return self

    @property
    def by_turn(self) -> bool:
        """Whether the turns of a rollout have advantages of their own."""
        return self.first_hit > 0 or self.information_gain is not None
