"""Credit for turns: the settings `[learning.credit]` of a recipe, each from its paper. All are off by default."""

from pydantic import BaseModel, ConfigDict, Field


class CreditSettings(BaseModel):
    """What is learned beside a rollout's reward; docs/training.md has the formulas."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first_hit: float = Field(default=0.0, ge=0, lt=1)
    """TSPO's first-occurrence reward (2601.22776): what a rollout with a wrong answer gets in its turns up to the one
    whose passages first hold a gold answer. 0: nothing."""
    keep_likelihood: float = Field(default=0.0, ge=0)
    """Weight of LLDS (2512.04220) in the loss: tokens whose advantage is 0 or more must not become less likely than
    they were when they were sampled. 0: no such term."""

    @property
    def by_turn(self) -> bool:
        """Whether the turns of a rollout have advantages of their own."""
        return self.first_hit > 0
