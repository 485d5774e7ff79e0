"""How many seeds and questions a claim needs, against numbers computed by hand and against scipy."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch", reason="the train extra is not installed")

from lab.reproduce.power import Spread, questions_needed, seeds_needed, t_interval, t_quantile, visible

pytestmark = pytest.mark.train

SPREAD = Spread(seeds=0.02, questions=0.3)
"""With 120 questions a seed's mean varies by sqrt(.02² + .3²/120) = .0339."""


@pytest.mark.parametrize(("freedom", "upper", "power"), [(1, 12.706, 1.376), (4, 2.776, 0.941), (7, 2.365, 0.896)])
def test_quantiles_are_those_of_the_printed_tables(freedom: int, upper: float, power: float):
    assert t_quantile(0.975, freedom) == pytest.approx(upper, abs=5e-4)
    assert t_quantile(0.8, freedom) == pytest.approx(power, abs=5e-4)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.55, 0.995), st.integers(1, 40))
def test_quantiles_are_those_of_scipy(share: float, freedom: int):
    scipy = pytest.importorskip("scipy.stats")
    assert t_quantile(share, freedom) == pytest.approx(float(scipy.t.ppf(share, freedom)), rel=1e-5)


def test_an_interval_over_seeds_is_students():
    found = t_interval([0.02, 0.05, 0.08])  # mean .05, deviation .03, t = 4.303 at two degrees of freedom
    assert found.value == pytest.approx(0.05)
    assert found.high - found.value == pytest.approx(4.303 * 0.03 / math.sqrt(3), abs=1e-5)
    assert found.value - found.low == pytest.approx(found.high - found.value)


def test_one_seed_has_no_bounds_and_seeds_that_agree_have_no_width():
    assert t_interval([0.1]).low == -math.inf
    same = t_interval([0.1, 0.1, 0.1])
    assert (same.low, same.high) == pytest.approx((0.1, 0.1))


def test_the_seeds_that_an_effect_needs_by_hand():
    # Five: (2.776 + .941) · .0339/√5 = .0564. Six: (2.571 + .920) · .0339/√6 = .0483.
    assert visible(SPREAD, seeds=5, questions=120) == pytest.approx(0.0564, abs=1e-4)
    assert visible(SPREAD, seeds=6, questions=120) == pytest.approx(0.0483, abs=1e-4)
    assert seeds_needed(0.05, SPREAD, questions=120) == 6


def test_the_questions_that_an_effect_needs_by_hand():
    # Eight seeds: 8 · (.05 / (2.365 + .896))² = .001881, less .0004 between seeds; .09 / .001481 = 60.8.
    assert questions_needed(0.05, SPREAD, seeds=8) == 61
    assert visible(SPREAD, seeds=8, questions=61) <= 0.05 < visible(SPREAD, seeds=8, questions=60)


def test_no_number_of_questions_replaces_seeds_that_vary():
    assert questions_needed(0.02, Spread(seeds=0.05, questions=0.3), seeds=8) is None
    with pytest.raises(ValueError, match="no 200 seeds"):
        seeds_needed(0.0001, SPREAD, questions=120)
