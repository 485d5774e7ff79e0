import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from train.evaluation.plots import Bin, Estimate, bars, bins, estimates, histogram

numbers = st.floats(0, 1e6, allow_nan=False) | st.integers(0, 100).map(float)


def test_whole_numbers_get_a_bin_each_and_a_long_tail_shares_the_last():
    assert bins([1, 1, 2, 3], whole=True) == [Bin(1, 2), Bin(2, 3), Bin(3, 4)]
    table = bins([1.0] * 500 + [2.0] * 500 + [900.0], whole=True)
    assert table == [Bin(1, 2), Bin(2, 3), Bin(3, None)]
    assert bins([], whole=True) == []
    assert bins([5e-324], whole=False)[0].low == 0


@given(st.lists(numbers, min_size=1, max_size=60), st.booleans())
def test_every_value_is_in_exactly_one_bin(values: list[float], whole: bool):
    values = [float(int(v)) for v in values] if whole else values
    table = bins(values, whole=whole)
    assert len(table) <= 20
    for value in values:
        assert sum(b.low <= value and (b.high is None or value < b.high) for b in table) == 1


def test_a_histogram_counts_right_and_other_answers():
    drawn = histogram("Searches", [1, 1, 2], [2], whole=True)
    assert "1: 2 questions, 2 of them right" in drawn
    assert "2: 2 questions, 1 of them right" in drawn


def test_an_estimate_stands_where_its_value_is():
    drawn = estimates([Estimate("chain", 8, 0.5, 0.25, 1.0)])
    assert 'x1="27.00%" x2="96.00%"' in drawn
    assert 'cx="50.00%"' in drawn
    assert "chain: EM 0.500, 95 % 0.250 to 1.000, 8 questions" in drawn


def test_a_signed_axis_marks_zero_and_signs_its_numbers():
    drawn = estimates([Estimate("all", 8, -0.1, -0.2, 0.1)], low=-0.2, high=0.2)
    assert 'class="zero" x1="50.00%"' in drawn
    assert ">-0.100<" in drawn


def test_plots_are_well_formed_and_hold_no_foreign_markup():
    hostile = "<script>\"&'</script>"
    for drawn in (
        estimates([Estimate(hostile, 1, 0.5, 0.5, 0.5)]),
        bars([(hostile, 3, "good"), ("none", 0, "rest")]),
        histogram(hostile, [1.0], [2.5], whole=False),
    ):
        ElementTree.fromstring(f"<div>{drawn}</div>")
        assert "<script" not in drawn
        assert not re.search(r"style=|on\w+=", drawn)
