"""How sure a figure is, and whether two runs differ: bootstrap, permutation, McNemar. Seeded, vectorised.

Questions are what is drawn: an interval says what other questions of the same kind would give, not what other seeds
would. Checked in the tests against scipy, which is not needed here.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES: Final = 2000
PERMUTATIONS: Final = 10_000
_CELLS: Final = 1 << 22
"""Of one table of resamples: 32 MB. More resamples are drawn table by table."""
_CLOSE: Final = 1e-13
"""Relative; two sums of the same numbers in another order are the same."""

Method = Literal["percentile", "bca"]
Values = NDArray[np.float64]
Statistic = Callable[[Values], Values]
"""From tables (…, n) to one number for each row."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the bounds around it."""

    value: float
    low: float
    high: float


def row_mean(table: Values) -> Values:
    return np.asarray(table.mean(axis=-1))


def bootstrap(
    values: ArrayLike,
    *,
    statistic: Statistic = row_mean,
    method: Method = "percentile",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The interval of a statistic by drawing the values again, with replacement.

    Args:
        values: one for each question.
        statistic: of each row of a table of values; by default the mean.
        method: `percentile`, or `bca`: corrected for bias and skewness (Efron, 1987).
        level: the share of such intervals that would hold the truth.
        resamples: how often to draw.
        seed: the same seed gives the same interval.

    Raises:
        ValueError: there are no values.
    """
    sample = _sample(values)
    drawn = np.concatenate([statistic(sample[rows]) for rows in _draws(len(sample), resamples, seed)])
    estimate = float(statistic(sample))
    tails = ((1 - level) / 2, (1 + level) / 2)
    if method == "bca":
        tails = bca_tails(drawn, estimate, jackknife(sample, statistic), level=level)
    low, high = np.quantile(drawn, tails)
    return Interval(estimate, float(low), float(high))


def bca_tails(drawn: Values, estimate: float, left_out: Values, *, level: float) -> tuple[float, float]:
    """The shares of the bootstrap distribution that bias-corrected, accelerated bounds stand at."""
    normal = NormalDist()
    below = (np.mean(drawn < estimate) + np.mean(drawn <= estimate)) / 2
    lean = left_out.mean() - left_out
    largest = np.abs(lean).max()
    if below in (0.0, 1.0) or largest == 0:
        return ((1 - level) / 2, (1 + level) / 2)
    bias = normal.inv_cdf(float(below))
    lean = lean / largest  # its scale does not matter, and cubes of small numbers vanish
    acceleration = float((lean**3).sum() / (6 * (lean**2).sum() ** 1.5))

    def corrected(share: float) -> float:
        z = bias + normal.inv_cdf(share)
        return normal.cdf(bias + z / (1 - acceleration * z))

    return (corrected((1 - level) / 2), corrected((1 + level) / 2))


def jackknife(sample: Values, statistic: Statistic) -> Values:
    """The statistic without the first value, without the second, and so on."""
    size = len(sample)
    if statistic is row_mean:
        return (sample.sum() - sample) / max(size - 1, 1)
    others = np.arange(size - 1)
    step = max(_CELLS // size, 1)
    parts = [np.arange(size)[at : at + step, None] for at in range(0, size, step)]
    return np.concatenate([statistic(sample[others + (others >= left)]) for left in parts])


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    *,
    method: Method = "percentile",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The interval of the mean of second − first, each pair of one question kept together.

    Raises:
        ValueError: there are no pairs, or not as many of one as of the other.
    """
    return bootstrap(_differences(first, second), method=method, level=level, resamples=resamples, seed=seed)


def permutation_test(first: ArrayLike, second: ArrayLike, *, permutations: int = PERMUTATIONS, seed: int = 0) -> float:
    """How often chance alone would set two runs this far apart: two-sided p of the mean difference of pairs.

    Under the null each pair may as well be swapped. All swaps are tried where there are no more than `permutations`;
    otherwise that many are drawn, and the run itself counts as one of them (Phipson and Smyth, 2010).

    Raises:
        ValueError: there are no pairs, or not as many of one as of the other.
    """
    differences = _differences(first, second)
    moving = differences[differences != 0]
    if len(moving) == 0:
        return 1.0
    seen = float(moving.sum())
    exact = len(moving) < 63 and 2 ** len(moving) <= permutations
    tables = _all_signs(len(moving)) if exact else _signs(len(moving), permutations, seed)
    sums = np.concatenate([signs @ moving for signs in tables])
    margin = float(np.abs(moving).sum()) * _CLOSE
    counts = int((sums <= seen + margin).sum()), int((sums >= seen - margin).sum())
    extra = 0 if exact else 1
    return min(1.0, 2 * (min(counts) + extra) / (len(sums) + extra))


def mcnemar(first: ArrayLike, second: ArrayLike) -> float:
    """Exact two-sided p that two runs are right equally often, from the questions on which they differ.

    Raises:
        ValueError: not as many of one as of the other, none at all, or values that are neither 0 nor 1.
    """
    one, two = _pair(first, second)
    if not np.isin(np.concatenate((one, two)), (0, 1)).all():
        raise ValueError("McNemar's test is of what is right or wrong, 1 or 0")
    lost, won = int((one > two).sum()), int((one < two).sum())
    total = lost + won
    if total == 0:
        return 1.0
    logs = [_log_choose(total, k) - total * math.log(2) for k in range(min(lost, won) + 1)]
    return min(1.0, 2 * math.fsum(map(math.exp, logs)))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """P of several tests at once, corrected for their number (Holm, 1979)."""
    corrected: dict[str, float] = {}
    largest = 0.0
    for place, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        largest = max(largest, min(1.0, p_values[name] * (len(p_values) - place)))
        corrected[name] = largest
    return {name: corrected[name] for name in p_values}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of two runs, over the questions that have it in both. Differences are second − first."""

    n: int
    first: float
    second: float
    difference: Interval
    p: float
    """By permutation of pairs."""
    p_mcnemar: float | None
    """Where the figure is right or wrong of each question."""
    better: int
    """Questions on which the second is higher."""
    worse: int

    @property
    def ties(self) -> int:
        return self.n - self.better - self.worse


def compare(
    first: Mapping[str, float | None],
    second: Mapping[str, float | None],
    *,
    method: Method = "percentile",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Comparison | None:
    """Compare one figure of two runs question by question; None where no question has it in both.

    Args:
        first: of each question id, the figure; None where it does not apply.
        second: the same of the other run.
        method: of the interval.
        level: of the interval.
        resamples: of the interval.
        permutations: of the test.
        seed: of both.
    """
    pairs = [(a, b) for key, a in first.items() if a is not None and (b := second.get(key)) is not None]
    if not pairs:
        return None
    one, two = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    return Comparison(
        n=len(pairs),
        first=float(one.mean()),
        second=float(two.mean()),
        difference=paired_bootstrap(one, two, method=method, level=level, resamples=resamples, seed=seed),
        p=permutation_test(one, two, permutations=permutations, seed=seed),
        p_mcnemar=mcnemar(one, two) if np.isin(np.concatenate((one, two)), (0, 1)).all() else None,
        better=int((two > one).sum()),
        worse=int((two < one).sum()),
    )


def _sample(values: ArrayLike) -> Values:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or len(sample) == 0:
        raise ValueError("there is nothing to draw from: give one value for each question")
    return sample


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[Values, Values]:
    one, two = _sample(first), _sample(second)
    if len(one) != len(two):
        raise ValueError(f"{len(one)} and {len(two)} values make no pairs")
    return one, two


def _differences(first: ArrayLike, second: ArrayLike) -> Values:
    one, two = _pair(first, second)
    return two - one


def _chunks(total: int, width: int) -> Iterator[int]:
    """`total` rows of `width` cells, in tables of no more than `_CELLS`."""
    step = max(_CELLS // width, 1)
    for at in range(0, total, step):
        yield min(step, total - at)


def _draws(size: int, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    for rows in _chunks(resamples, size):
        yield rng.integers(size, size=(rows, size))


def _signs(size: int, permutations: int, seed: int) -> Iterator[NDArray[np.int8]]:
    rng = np.random.default_rng(seed)
    for rows in _chunks(permutations, size):
        yield rng.integers(0, 2, size=(rows, size), dtype=np.int8) * np.int8(2) - np.int8(1)


def _all_signs(size: int) -> Iterator[NDArray[np.int8]]:
    numbers = np.arange(2**size)[:, None]
    yield (1 - 2 * ((numbers >> np.arange(size)) & 1)).astype(np.int8)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
