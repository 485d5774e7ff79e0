"""Rules of collapse, as data: which figure may not be where for how long, and what to do when it is.

A rule never looks at a model or a file; `monitors` feeds it, and a recipe can replace, add or leave out any.
"""

import math
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent.errors import SetupError
from train.safety.figures import Figures
from train.safety.probes import Probe


class Collapsed(SetupError):
    """A run stopped itself; the sentence names the rule, the figures and the fix."""


class Rule(BaseModel):
    """What ends a run: every bound that is given is broken for `steps` steps, one after the other.

    A figure that is no number (nan, infinite) breaks every rule about it. A step without the figure is skipped.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """As the sentence has it, for example "answers are no longer closed"."""
    figure: str
    """A figure's name, or a pattern of several: `reward/*_highest`. Each is looked at on its own."""
    below: float | None = None
    above: float | None = None
    flat: float | None = Field(default=None, ge=0)
    """The figure moves by no more than this over all the steps."""
    steps: int = Field(default=1, ge=1)
    after: int = Field(default=0, ge=0)
    """The steps up to this one are not looked at."""
    fix: str
    """What a person can do, as the end of the sentence."""

    @model_validator(mode="after")
    def _has_a_bound(self) -> Self:
        if self.below is None and self.above is None and self.flat is None:
            raise ValueError(f"the rule {self.name!r} has no bound: give below, above or flat")
        return self

    def speaks_of(self, name: str) -> bool:
        """Whether it is about this figure."""
        return fnmatchcase(name, self.figure)

    def broken_by(self, history: Sequence[tuple[int, Figures]]) -> str:
        """Why the run must stop after the last of these steps; empty if it need not.

        Args:
            history: (step, its figures), the newest last.
        """
        names = dict.fromkeys(name for _, figures in history[-1:] for name in figures if self.speaks_of(name))
        return next((why for name in names if (why := self._broken(name, history))), "")

    def _broken(self, name: str, history: Sequence[tuple[int, Figures]]) -> str:
        values = [figures[name] for step, figures in history if name in figures and step > self.after][-self.steps :]
        if values and not math.isfinite(values[-1]):
            return self._sentence(name, values[-1:])
        if len(values) < self.steps or not all(self._beyond(value) for value in values):
            return ""
        if self.flat is not None and max(values) - min(values) > self.flat:
            return ""
        return self._sentence(name, values)

    def _beyond(self, value: float) -> bool:
        low = self.below is None or value < self.below
        return low and (self.above is None or value > self.above)

    def _sentence(self, name: str, values: Sequence[float]) -> str:
        bounds = [
            *([f"below {self.below:g}"] if self.below is not None else []),
            *([f"above {self.above:g}"] if self.above is not None else []),
            *([f"within {self.flat:g} of itself"] if self.flat is not None else []),
        ]
        last = ", ".join(f"{value:.4g}" for value in values[-5:])
        long = f"the last {len(values)} steps" if len(values) > 1 else "this step"
        if not math.isfinite(values[-1]):
            return f"{self.name}: {name} is {last}; {self.fix}"
        return f"{self.name}: {name} was {' and '.join(bounds)} in {long} ({last}); {self.fix}"


SEARCHES_FAIL: Final = Rule(
    name="every search of the step failed",
    figure="search/failed_share",
    above=0.999,
    fix="the retriever is dead: start it again, try it with `cairn doctor`, then continue with --resume",
)
SEARCHES_EMPTY: Final = Rule(
    name="searches find nothing",
    figure="search/empty_share",
    above=0.9,
    steps=3,
    fix="look at the index and at the queries of the last traces: a policy learns nothing from empty results",
)
ALL_MASKED: Final = Rule(
    name="nothing is left to learn from",
    figure="masked/share",
    above=0.8,
    steps=3,
    fix="monitors.jsonl has the reasons: repair the sources, the judge or the reader, then continue with --resume",
)
UNCLOSED: Final = Rule(
    name="answers are no longer closed",
    figure="answer/closed_share",
    below=0.3,
    steps=5,
    fix="go back to an earlier checkpoint with a lower learning rate or a higher KL weight",
)
TOO_LONG: Final = Rule(
    name="rollouts run into their length limit",
    figure="length/limit_share",
    above=0.5,
    steps=5,
    fix="go back to an earlier checkpoint; raise the limit, or let the reward punish what is over-long",
)
ENTROPY_GONE: Final = Rule(
    name="the policy always writes the same",
    figure="trainer/entropy",
    below=1e-4,
    steps=10,
    fix="go back to an earlier checkpoint; a higher upper clip, a KL weight or a higher temperature keep it exploring",
)
ENTROPY_HIGH: Final = Rule(
    name="the policy writes noise",
    figure="trainer/entropy",
    above=3.0,
    steps=3,
    fix="go back to an earlier checkpoint with a lower learning rate",
)
FAR_AWAY: Final = Rule(
    name="the policy has left its reference",
    figure="trainer/kl",
    above=5.0,
    steps=5,
    fix="go back to an earlier checkpoint with a lower learning rate or a higher KL weight",
)
NO_LOSS: Final = Rule(
    name="the loss exploded",
    figure="trainer/loss",
    above=1e4,
    fix="go back to an earlier checkpoint with a lower learning rate or a smaller clip of the gradient",
)
ALL_THE_SAME: Final = Rule(
    name="every rollout gets the same reward",
    figure="reward/total_std",
    below=1e-6,
    steps=20,
    fix="a reward that is flat at an extreme teaches nothing: choose harder or easier questions, or another reward",
)

DEFAULT_RULES: Final = (
    SEARCHES_FAIL,
    SEARCHES_EMPTY,
    ALL_MASKED,
    UNCLOSED,
    TOO_LONG,
    ENTROPY_GONE,
    ENTROPY_HIGH,
    FAR_AWAY,
    NO_LOSS,
    ALL_THE_SAME,
)


def check(rules: Iterable[Rule], history: Sequence[tuple[int, Figures]]) -> None:
    """Check every rule against the steps so far.

    Raises:
        Collapsed: one is broken.
    """
    for rule in rules:
        if why := rule.broken_by(history):
            raise Collapsed(f"the run stopped itself at step {history[-1][0]}: {why}")


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
