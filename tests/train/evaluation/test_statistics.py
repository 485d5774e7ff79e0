"""The statistics against scipy on worked examples, and what must hold of any values."""

import math
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.evaluation import statistics
from train.evaluation.statistics import (
    Interval,
    Method,
    bca_tails,
    bootstrap,
    compare,
    holm,
    jackknife,
    mcnemar,
    paired_bootstrap,
    permutation_test,
    row_mean,
)

stats: Any = import_module("scipy.stats")  # has no types

RNG = np.random.default_rng(7)
SKEWED = RNG.exponential(size=60)
RIGHT = (RNG.random(200) < 0.37).astype(float)
F1 = np.where(RNG.random(150) < 0.4, 1.0, RNG.random(150) * (RNG.random(150) < 0.5))
SAMPLES = {"skewed": SKEWED, "right": RIGHT, "f1": F1, "few": np.array([0.0, 1.0, 1.0, 0.5, 0.2])}
Row = Callable[[Any], Any]

shares = st.lists(st.floats(0, 1), min_size=1, max_size=40)
verdicts = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def scipys(values: Any, method: str, level: float = 0.95, statistic: Row = np.mean, resamples: int = 20_000) -> Any:
    found: Any = stats.bootstrap(
        (values,), statistic, method=method, confidence_level=level, n_resamples=resamples, rng=np.random.default_rng(1)
    )
    return found


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("name", ["skewed", "right", "f1"])
def test_intervals_agree_with_scipys(name: str, method: Method, level: float):
    values = SAMPLES[name]
    ours = bootstrap(values, method=method, level=level, resamples=20_000)
    theirs = scipys(values, method, level).confidence_interval
    step = 1 / len(values) if name == "right" else 0.0  # a mean of ones and zeros moves in steps
    near = 0.03 * (theirs.high - theirs.low) + step
    assert ours.value == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.low, abs=near)
    assert ours.high == pytest.approx(theirs.high, abs=near)


@pytest.mark.parametrize("name", SAMPLES)
def test_bca_bounds_are_scipys_exactly_for_the_same_resamples(name: str):
    values = SAMPLES[name]
    drawn = scipys(values, "bca", resamples=999).bootstrap_distribution
    earlier = SimpleNamespace(bootstrap_distribution=drawn)
    theirs: Any = stats.bootstrap((values,), np.mean, method="bca", n_resamples=0, bootstrap_result=earlier)
    low, high = np.quantile(drawn, bca_tails(drawn, float(values.mean()), jackknife(values, row_mean), level=0.95))
    assert (low, high) == pytest.approx((theirs.confidence_interval.low, theirs.confidence_interval.high), rel=1e-9)


def test_bca_leans_the_way_that_the_values_do():
    plain, corrected = bootstrap(SKEWED, resamples=10_000), bootstrap(SKEWED, method="bca", resamples=10_000)
    assert corrected.low > plain.low
    assert corrected.high > plain.high


def test_any_statistic_of_rows_has_an_interval():
    def median(table: Any) -> Any:
        return np.median(table, axis=-1)

    for method in ("percentile", "bca"):
        ours = bootstrap(SKEWED, statistic=median, method=method, resamples=10_000)
        theirs = scipys(SKEWED, method, statistic=np.median).confidence_interval
        assert ours.value == np.median(SKEWED)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.06)


def test_the_quick_jackknife_of_the_mean_is_the_slow_one():
    def slow(table: Any) -> Any:
        return table.mean(axis=-1)

    assert jackknife(SKEWED, row_mean) == pytest.approx(jackknife(SKEWED, slow))
    assert jackknife(SKEWED, slow)[3] == pytest.approx(np.delete(SKEWED, 3).mean())


@pytest.mark.parametrize(("cells", "resamples"), [(50, 100), (1, 7), (10_000, 999)])
def test_small_tables_draw_as_often_as_one_large_one(monkeypatch: pytest.MonkeyPatch, cells: int, resamples: int):
    monkeypatch.setattr(statistics, "_CELLS", cells)
    counted: list[int] = []

    def count(table: Any) -> Any:
        counted.append(1 if table.ndim == 1 else len(table))
        return table.mean(axis=-1)

    found = bootstrap(SAMPLES["few"], statistic=count, resamples=resamples)
    assert sum(counted) == resamples + 1
    assert 0 <= found.low <= found.value <= found.high <= 1


@given(shares, st.sampled_from(["percentile", "bca"]))
def test_an_interval_lies_within_the_values_and_repeats(values: list[float], method: Method):
    found = bootstrap(values, method=method, resamples=200)
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found == bootstrap(values, method=method, resamples=200)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("values", [[0.0], [1.0] * 12, [0.25, 0.25]])
def test_what_never_changes_has_an_interval_of_no_width(values: list[float], method: Method):
    assert bootstrap(values, method=method) == Interval(values[0], values[0], values[0])


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_truth_is_in_the_interval_about_as_often_as_promised(method: Method):
    rng = np.random.default_rng(3)
    hits = 0
    for seed in range(300):
        found = bootstrap((rng.random(80) < 0.3).astype(float), method=method, resamples=400, seed=seed)
        hits += found.low <= 0.3 <= found.high
    assert 0.90 <= hits / 300 <= 0.99


def scipys_permutation(one: Any, two: Any, resamples: float) -> float:
    def difference(a: Any, b: Any, axis: int) -> Any:
        return np.mean(b - a, axis=axis)

    found: Any = stats.permutation_test(
        (one, two),
        difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        rng=np.random.default_rng(2),
    )
    return float(found.pvalue)


@pytest.mark.parametrize("seed", range(8))
def test_with_few_pairs_the_permutation_test_is_exact_and_scipys(seed: int):
    rng = np.random.default_rng(seed)
    one, two = rng.random(11), rng.random(11) + 0.1 * (seed % 3)
    assert permutation_test(one, two) == pytest.approx(scipys_permutation(one, two, math.inf), abs=1e-12)


def test_ties_change_nothing_and_half_of_all_swaps_at_least_are_as_far():
    assert permutation_test([0, 1, 1, 0, 1, 1], [0, 1, 0, 1, 1, 1]) == 1.0
    assert permutation_test([1, 0], [1, 0]) == 1.0
    one, two = np.array([0, 0, 0, 0, 0, 1.0, 1, 1]), np.array([1, 1, 1, 1, 1, 1.0, 1, 1])
    assert permutation_test(one, two) == pytest.approx(2 / 2**5)
    assert permutation_test(one, two) == pytest.approx(scipys_permutation(one, two, math.inf))


@pytest.mark.parametrize("shift", [0.0, 0.03, 0.06])
def test_with_many_pairs_drawn_swaps_come_close_to_scipys(shift: float):
    rng = np.random.default_rng(5)
    one = (rng.random(400) < 0.4).astype(float)
    two = np.where(rng.random(400) < 0.2, (rng.random(400) < 0.4 + 5 * shift).astype(float), one)
    ours, theirs = permutation_test(one, two, permutations=20_000), scipys_permutation(one, two, 20_000)
    assert ours == pytest.approx(theirs, abs=0.015)
    assert ours >= 1 / 20_001


@given(verdicts)
def test_swapping_the_two_runs_changes_no_p(pairs: list[tuple[bool, bool]]):
    one, two = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    assert mcnemar(one, two) == pytest.approx(mcnemar(two, one))
    there, back = paired_bootstrap(one, two, resamples=50), paired_bootstrap(two, one, resamples=50)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    if len(pairs) <= 12:
        assert permutation_test(one, two) == pytest.approx(permutation_test(two, one))


@given(verdicts)
def test_mcnemar_is_the_exact_binomial_test_of_what_differs(pairs: list[tuple[bool, bool]]):
    lost, won = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    found: Any = stats.binomtest(won, won + lost).pvalue if won + lost else 1.0
    one, two = zip(*pairs, strict=True)
    assert mcnemar(np.array(one, float), np.array(two, float)) == pytest.approx(float(found), rel=1e-9)


def test_mcnemar_of_very_many_questions_is_still_scipys():
    one, two = np.zeros(9000), np.zeros(9000)
    one[:4000], two[4000:8200] = 1, 1
    found: Any = stats.binomtest(4000, 8200).pvalue
    assert mcnemar(one, two) == pytest.approx(float(found), rel=1e-6)


def test_the_paired_interval_is_narrower_than_that_of_two_strangers():
    rng = np.random.default_rng(9)
    one = (rng.random(300) < 0.5).astype(float)
    two = one.copy()
    two[:20] = 1
    paired = paired_bootstrap(one, two)
    strangers = paired_bootstrap(one, rng.permutation(two))
    assert paired.low > 0 > strangers.low

    def difference(a: Any, b: Any, axis: int) -> Any:
        return np.mean(b - a, axis=axis)

    theirs: Any = stats.bootstrap(
        (one, two), difference, paired=True, method="percentile", vectorized=True, rng=np.random.default_rng(1)
    ).confidence_interval
    assert (paired.low, paired.high) == pytest.approx((theirs.low, theirs.high), abs=0.004)


def test_holms_correction_is_the_worked_example():
    """The steps by hand: .01 × 4; .02 × 3; then .03 × 2, which equals it; .04 may not be smaller than what came before."""
    found = holm({"d": 0.04, "a": 0.01, "c": 0.03, "b": 0.02})
    assert found == pytest.approx({"d": 0.06, "a": 0.04, "c": 0.06, "b": 0.06})
    assert list(found) == ["d", "a", "c", "b"]
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_two_runs_are_compared_over_what_both_have():
    first = {"a": 1.0, "b": 0.0, "c": None, "d": 1.0, "e": 0.0}
    second = {"a": 1.0, "b": 1.0, "c": 1.0, "d": None, "e": 1.0, "f": 1.0}
    found = compare(first, second)
    assert found is not None
    assert (found.n, found.first, found.second, found.better, found.worse, found.ties) == (3, 1 / 3, 1.0, 2, 0, 1)
    assert found.difference.value == pytest.approx(2 / 3)
    assert found.p == found.p_mcnemar == 0.5
    assert compare({"a": 1.0}, {"b": 1.0}) is None
    shares = compare({"a": 0.5}, {"a": 0.25})
    assert shares is not None
    assert shares.p_mcnemar is None
    assert shares.difference == Interval(-0.25, -0.25, -0.25)


def test_what_makes_no_pairs_is_refused():
    with pytest.raises(ValueError, match="2 and 1 values make no pairs"):
        permutation_test([1, 0], [1])
    with pytest.raises(ValueError, match="right or wrong, 1 or 0"):
        mcnemar([0.5], [1])
    with pytest.raises(ValueError, match="nothing to draw from"):
        bootstrap([])
