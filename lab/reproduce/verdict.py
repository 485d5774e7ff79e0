"""Whether a claim holds, by a rule that was fixed before anything ran: intervals over questions and seeds.

A difference is paired: the same question in the same world of the same seed, answered by both policies. Seeds are drawn
with replacement, then questions inside each drawn seed. With three seeds this says what other questions would give, and
only roughly what other seeds would.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from lab.reproduce.design import Direction, Expected, Side
from lab.reproduce.evaluating import Answers
from train.evaluation.statistics import RESAMPLES, Interval

Verdict = Literal["holds", "does not hold", "undecided", "not run"]
Values = NDArray[np.float64]
Found = Mapping[str, Mapping[int, Answers]]
"""Arm → seed → its answers."""

LEVEL: Final = 0.95
_WORST: Final[tuple[Verdict, ...]] = ("not run", "does not hold", "undecided", "holds")


@dataclass(frozen=True)
class Judged:
    """One inequality, with what was found."""

    expected: Expected
    first: float
    second: float
    difference: Interval
    n: int
    """Pairs."""
    seeds: int
    verdict: Verdict
    """`not run` as long as seeds are missing."""

    @property
    def is_small(self) -> bool:
        """Whether a difference that holds is no larger than the margin, whatever it is."""
        return self.verdict == "holds" and self.expected.kind == "more" and self.difference.high <= self.expected.margin


@dataclass(frozen=True)
class Ruling:
    """One direction with all of its inequalities; those that cannot be judged yet are left out."""

    direction: Direction
    judged: tuple[Judged, ...]
    seeds: int = 1
    """That are wanted of each."""

    @property
    def verdict(self) -> Verdict:
        """The worst one of its inequalities: a claim holds where all of them do."""
        if len(self.judged) < len(self.direction.expected):
            return "not run"
        return next(worst for worst in _WORST if any(one.verdict == worst for one in self.judged))


def rule(direction: Direction, found: Found, *, seeds: int = 1) -> Ruling:
    """Judge one direction by what was found so far; a verdict needs all of the seeds."""
    judged = [one for expected in direction.expected if (one := judge(expected, found, seeds=seeds)) is not None]
    return Ruling(direction, tuple(judged), seeds)


def judge(expected: Expected, found: Found, *, seeds: int = 1) -> Judged | None:
    """Judge one inequality; None where a side has no answers yet, or nothing is in both."""
    pairs = paired(expected, found)
    if not pairs:
        return None
    difference = interval([first - second for first, second in pairs])
    return Judged(
        expected=expected,
        first=float(np.mean([first.mean() for first, _ in pairs])),
        second=float(np.mean([second.mean() for _, second in pairs])),
        difference=difference,
        n=sum(len(first) for first, _ in pairs),
        seeds=len(pairs),
        verdict=verdict(expected, difference) if len(pairs) >= seeds else "not run",
    )


def verdict(expected: Expected, difference: Interval) -> Verdict:
    """The rule: whether it holds comes first. docs/reproduction.md has it in words."""
    low, high, margin = difference.low, difference.high, expected.margin
    inside = -margin < low and high < margin
    match expected.kind:
        case "more":
            holds, fails = low > 0, high < 0 or inside
        case "same":
            holds, fails = inside, low > margin or high < -margin
        case "no_more":
            holds, fails = high <= margin, low > 0 and low > margin
    return "holds" if holds else "does not hold" if fails else "undecided"


def interval(by_seed: Sequence[Values], *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """The mean of the seeds' means, with the bounds of a bootstrap in two steps: seeds, then questions inside of them.

    Args:
        by_seed: of each seed, one difference a question.
        resamples: how often to draw.
        seed: the same seed gives the same interval.
    """
    rng = np.random.default_rng(seed)
    count = len(by_seed)
    drawn = np.empty((count, resamples))
    picked = rng.integers(count, size=(count, resamples))
    for slot in range(count):
        means = np.stack([_means(values, resamples, rng) for values in by_seed])
        drawn[slot] = means[picked[slot], np.arange(resamples)]
    low, high = np.quantile(drawn.mean(axis=0), ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Interval(float(np.mean([values.mean() for values in by_seed])), float(low), float(high))


def paired(expected: Expected, found: Found) -> list[tuple[Values, Values]]:
    """Of each seed, both sides' figures of the questions that have one in both, in the same order."""
    first, second = expected.first, expected.second
    pairs: list[tuple[Values, Values]] = []
    for seed, answers in sorted(found.get(first.arm, {}).items()):
        one = figures(first, answers)
        if isinstance(second, Side):
            if seed not in found.get(second.arm, {}):
                continue
            two = figures(second, found[second.arm][seed])
        else:
            two = dict.fromkeys(one, second)
        keys = [key for key in one if key in two]
        if keys:
            pairs.append((np.array([one[key] for key in keys]), np.array([two[key] for key in keys])))
    return pairs


def figures(side: Side, answers: Answers) -> dict[str, float]:
    """Question → the figure of a side, where it applies."""
    return {
        key: float(one[side.metric])
        for key, one in answers.items()
        if one.get(side.metric) is not None
        and (not side.types or one["type"] in side.types)
        and one["type"] not in side.but
    }


def _means(values: Values, resamples: int, rng: np.random.Generator) -> Values:
    return values[rng.integers(len(values), size=(resamples, len(values)))].mean(axis=1)
