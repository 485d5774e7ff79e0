"""Percentiles of many values, of few, and of none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.benchmarks.percentiles import percentiles


def test_of_a_hundred_and_one_values_each_percentile_is_one_of_them():
    assert percentiles([float(n) for n in reversed(range(101))]) == pytest.approx(list(range(1, 100)))


@pytest.mark.parametrize(("values", "each"), [([], 0.0), ([3.5], 3.5), ([2.0, 2.0], 2.0)])
def test_of_values_that_do_not_differ_all_are_the_same(values: list[float], each: float):
    assert percentiles(values) == [each] * 99


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_they_rise_and_stay_within_the_values(values: list[float]):
    found = percentiles(values)
    assert len(found) == 99
    assert found == pytest.approx(sorted(found))
    assert min(values) == pytest.approx(min([*found, min(values)]))
    assert max(values) == pytest.approx(max([*found, max(values)]))
