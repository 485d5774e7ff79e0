"""The rule: which intervals make a claim hold, and what an interval is of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch", reason="the train extra is not installed")

from lab.reproduce.design import Direction, Expected, Kind, Side
from lab.reproduce.evaluating import Answers
from lab.reproduce.verdict import Verdict, interval, judge, rule, verdict
from train.evaluation.statistics import Interval, paired_bootstrap

pytestmark = pytest.mark.train

A, B = Side(arm="a"), Side(arm="b")


def answers(*em: float | None, kind: str = "chain1") -> Answers:
    return {str(number): {"type": kind, "em": value} for number, value in enumerate(em)}


@pytest.mark.parametrize(
    ("kind", "low", "high", "expected"),
    [
        ("more", 0.01, 0.2, "holds"),
        ("more", 0.01, 0.04, "holds"),  # tested first, though it lies within the margin
        ("more", -0.2, -0.01, "does not hold"),
        ("more", -0.04, 0.04, "does not hold"),
        ("more", -0.04, 0.2, "undecided"),
        ("same", -0.04, 0.04, "holds"),
        ("same", 0.01, 0.04, "holds"),
        ("same", 0.06, 0.2, "does not hold"),
        ("same", -0.2, -0.06, "does not hold"),
        ("same", -0.2, 0.04, "undecided"),
        ("no_more", -0.3, 0.05, "holds"),
        ("no_more", 0.06, 0.2, "does not hold"),
        ("no_more", 0.01, 0.2, "undecided"),
    ],
)
def test_the_interval_alone_decides(kind: Kind, low: float, high: float, expected: Verdict):
    assert verdict(Expected(kind=kind, first=A, second=B), Interval((low + high) / 2, low, high)) == expected


def test_a_difference_is_paired_by_seed_and_question():
    found = {
        "a": {1: answers(1, 1, 0, None), 2: answers(1, 1)},
        "b": {1: answers(0, 0, 0, 1), 3: answers(1, 1)},
    }
    judged = judge(Expected(first=A, second=B), found)
    assert judged is not None
    assert (judged.n, judged.seeds) == (3, 1)
    assert (judged.first, judged.second) == pytest.approx((2 / 3, 0))


def test_only_questions_of_the_types_that_a_side_names_are_compared():
    found = {"a": {1: {**answers(1, 1), "k": {"type": "known", "em": 0.0}}}}
    known = judge(Expected(first=Side(arm="a", types=("known",)), second=0.2), found)
    others = judge(Expected(first=Side(arm="a", but=("known",)), second=0.2), found)
    assert known is not None
    assert others is not None
    assert (known.first, known.n) == (0, 1)
    assert (others.first, others.n) == (1, 2)


def test_what_one_side_lacks_cannot_be_judged():
    assert judge(Expected(first=A, second=B), {"a": {1: answers(1)}}) is None


def claim(*expected: Expected) -> Direction:
    return Direction(name="kg.x", paper="kg", claim="x.", figures="x", place="x", expected=expected, cannot="x.")


def test_a_claim_holds_where_all_of_its_inequalities_do():
    found = {"a": {1: answers(*[1.0] * 40)}, "b": {1: answers(*[0.0] * 40)}, "c": {1: answers(*[1.0, 0.0] * 20)}}
    ahead, behind = Expected(first=A, second=B), Expected(first=B, second=A)
    assert rule(claim(ahead), found).verdict == "holds"
    assert rule(claim(ahead, behind), found).verdict == "does not hold"
    assert rule(claim(ahead, Expected(first=A, second=Side(arm="d"))), found).verdict == "not run"
    near = Expected(kind="same", first=Side(arm="c"), second=0.55, margin=0.1)
    assert rule(claim(ahead, near), found).verdict == "undecided"


def test_a_claim_with_seeds_missing_has_no_verdict_yet():
    found = {"a": {1: answers(*[1.0] * 40)}, "b": {1: answers(*[0.0] * 40)}}
    ruling = rule(claim(Expected(first=A, second=B)), found, seeds=2)
    assert ruling.verdict == "not run"
    assert [one.verdict for one in ruling.judged] == ["not run"]


def test_a_difference_that_holds_by_less_than_the_margin_is_marked_as_small():
    found = {"a": {1: answers(*[1.0] * 40)}, "b": {1: answers(*[0.0] * 40)}}
    far, near = (judge(Expected(first=A, second=B, margin=margin), found) for margin in (0.5, 1.5))
    assert far is not None
    assert near is not None
    assert (far.verdict, far.is_small) == ("holds", False)
    assert (near.verdict, near.is_small) == ("holds", True)


def test_with_one_seed_it_is_the_bootstrap_over_questions():
    rng = np.random.default_rng(5)
    values = rng.normal(0.1, 1, 300)
    ours = interval([values], resamples=4000)
    known = paired_bootstrap(np.zeros(300), values, resamples=4000)
    assert ours.value == pytest.approx(known.value)
    assert (ours.low, ours.high) == pytest.approx((known.low, known.high), abs=0.02)


def test_seeds_that_disagree_widen_the_interval():
    rng = np.random.default_rng(5)
    noise = [rng.normal(0, 0.1, 200) for _ in range(3)]
    alike = interval([values + 0.2 for values in noise])
    apart = interval([values + shift for values, shift in zip(noise, (-0.1, 0.2, 0.5), strict=True)])
    assert apart.value == pytest.approx(alike.value, abs=0.02)
    assert apart.high - apart.low > 5 * (alike.high - alike.low)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.floats(-1, 1), min_size=1, max_size=8), min_size=1, max_size=4))
def test_an_interval_lies_within_what_was_drawn_from(lists: list[list[float]]):
    found = interval([np.array(values) for values in lists], resamples=200)
    everything = [value for values in lists for value in values]
    assert min(everything) - 1e-9 <= found.low <= found.high <= max(everything) + 1e-9
