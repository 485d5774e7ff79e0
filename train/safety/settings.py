"""The `[safety]` table of a recipe: rules that stop the run, and the probes of its retriever. Only data is here."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from train.safety.probes import Probe
from train.safety.rules import DEFAULT_RULES, Rule


class Safety(BaseModel):
    """What watches a run. Without an entry in the recipe: the default rules, and probes in little worlds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: tuple[Rule, ...] = ()
    """Beside the default ones; one with the name of a default one replaces it."""
    without: tuple[str, ...] = ()
    """Names of default rules that do not hold here."""
    probes: tuple[Probe, ...] = ()
    """Queries whose answer is known; where the run searches a little world, it finds its own. Elsewhere name them."""
    probe_every_steps: int = Field(default=1, ge=1)
    probe_seconds: float = Field(default=20.0, gt=0)

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        known = [rule.name for rule in DEFAULT_RULES]
        if unknown := sorted(set(self.without) - set(known)):
            raise ValueError(f"there is no default rule {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
        return self

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """The rules that hold, the recipe's own last."""
        left_out = {*self.without, *(rule.name for rule in self.rules)}
        return (*(rule for rule in DEFAULT_RULES if rule.name not in left_out), *self.rules)
