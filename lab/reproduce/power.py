"""How sure a difference over seeds is, and how many seeds and questions it takes to see one: Student's t, both times.

The model: of each seed, the mean difference over its questions varies by the deviation between seeds, and by that
between questions divided by their number. Both vary at once from seed to seed, so the interval needs the seeds' means
alone, and the power calculation both deviations. Checked in the tests against scipy, which is not needed here.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from agent.evidence import Frozen
from train.evaluation.statistics import Interval

LEVEL: Final = 0.95
POWER: Final = 0.8
"""The share of studies that would see an effect of the size that they are made for."""
MOST_SEEDS: Final = 200
_STEPS: Final = 200
_FARTHEST: Final = 1e6


class Spread(Frozen):
    """Deviations of a difference, as they are expected before a run."""

    seeds: float
    """Between seeds, if each had questions without end."""
    questions: float
    """Between questions of a seed."""

    def error(self, seeds: int, questions: int) -> float:
        """The standard error of the mean difference."""
        return math.sqrt((self.seeds**2 + self.questions**2 / questions) / seeds)


def t_interval(means: Sequence[float], level: float = LEVEL) -> Interval:
    """The mean of the seeds' means with Student's interval; without bounds for a single seed.

    Args:
        means: of each seed, its mean difference.
        level: the share of such intervals that would hold the truth.
    """
    count, mean = len(means), sum(means) / len(means)
    if count < 2:
        return Interval(mean, -math.inf, math.inf)
    deviation = math.sqrt(sum((one - mean) ** 2 for one in means) / (count - 1))
    reach = t_quantile((1 + level) / 2, count - 1) * deviation / math.sqrt(count)
    return Interval(mean, mean - reach, mean + reach)


def seeds_needed(effect: float, spread: Spread, *, questions: int, power: float = POWER) -> int:
    """Seeds from which an interval excludes 0 in so many of the cases, if the difference is the effect.

    Raises:
        ValueError: more than two hundred.
    """
    for seeds in range(2, MOST_SEEDS):
        if visible(spread, seeds=seeds, questions=questions, power=power) <= effect:
            return seeds
    raise ValueError(f"no {MOST_SEEDS} seeds see a difference of {effect:g}")


def questions_needed(effect: float, spread: Spread, *, seeds: int, power: float = POWER) -> int | None:
    """Questions of each seed, given the seeds; None where no number suffices, because the seeds vary too much."""
    wanted = seeds * (effect / _factor(seeds, power)) ** 2 - spread.seeds**2
    return math.ceil(spread.questions**2 / wanted) if wanted > 0 else None


def visible(spread: Spread, *, seeds: int, questions: int, power: float = POWER) -> float:
    """The smallest difference that is seen with this power."""
    return _factor(seeds, power) * spread.error(seeds, questions)


@cache
def t_quantile(share: float, freedom: int) -> float:
    """The value below which a share (above a half) of Student's t lies."""
    low, high = 0.0, 1.0
    while _below(high, freedom) < share and high < _FARTHEST:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, freedom) < share else (low, middle)
    return (low + high) / 2


def _factor(seeds: int, power: float) -> float:
    return t_quantile((1 + LEVEL) / 2, seeds - 1) + t_quantile(power, seeds - 1)


def _below(value: float, freedom: int) -> float:
    """The share of Student's t below a positive value: Simpson's rule over the angle whose tangent it is."""
    angles, width = np.linspace(0, math.atan(value / math.sqrt(freedom)), _STEPS + 1, retstep=True)
    heights = np.cos(angles) ** (freedom - 1)
    area = heights[0] + heights[-1] + 4 * heights[1:-1:2].sum() + 2 * heights[2:-1:2].sum()
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return float(0.5 + scale * area * width / 3)
