"""The rule: which intervals and checks make a claim hold, and what an interval is of."""

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from lab.reproduce.design import Check, CheckKind, Direction, Expected, Kind, Side
from lab.reproduce.evaluating import Answers, points_as_one
from lab.reproduce.power import Spread
from lab.reproduce.verdict import Found, Verdict, curve, interval, judge, look, rule, verdict
from train.evaluation.statistics import Interval

pytestmark = pytest.mark.train

A, B = Side(arm="a"), Side(arm="b")
SPREAD = Spread(seeds=0.02, questions=0.3)


def expected(first: Side = A, second: Side | float = B, *, kind: Kind = "more", margin: float = 0.05) -> Expected:
    return Expected(kind=kind, first=first, second=second, margin=margin, spread=SPREAD)


def answers(*em: float | None, kind: str = "chain1") -> Answers:
    return {str(number): {"type": kind, "em": value} for number, value in enumerate(em)}


def seeds(*shares: float) -> dict[int, Answers]:
    """Of each seed 40 answers, of which a share is right."""
    return {seed: answers(*(float(n < 40 * share) for n in range(40))) for seed, share in enumerate(shares, start=1)}


@pytest.mark.parametrize(
    ("kind", "low", "high", "wanted"),
    [
        ("more", 0.01, 0.2, "holds"),
        ("more", 0.01, 0.04, "holds"),  # tested first, though it lies within the margin
        ("more", -0.2, -0.01, "does not hold"),
        ("more", -0.04, 0.04, "does not hold"),
        ("more", -0.04, 0.2, "undecided"),
        ("more", -math.inf, math.inf, "undecided"),
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
def test_the_interval_alone_decides(kind: Kind, low: float, high: float, wanted: Verdict):
    assert verdict(expected(kind=kind), Interval((low + high) / 2, low, high)) == wanted


def test_a_difference_is_paired_by_seed_and_question():
    found = {
        "a": {1: answers(1, 1, 0, None), 2: answers(1, 1)},
        "b": {1: answers(0, 0, 0, 1), 3: answers(1, 1)},
    }
    judged = judge(expected(), found)
    assert judged is not None
    assert (judged.n, judged.seeds) == (3, 1)
    assert (judged.first, judged.second) == pytest.approx((2 / 3, 0))


def test_only_questions_of_the_types_that_a_side_names_are_compared():
    found = {"a": {1: {**answers(1, 1), "k": {"type": "known", "em": 0.0}}}}
    known = judge(expected(Side(arm="a", types=("known",)), 0.2), found)
    others = judge(expected(Side(arm="a", but=("known",)), 0.2), found)
    assert known is not None
    assert others is not None
    assert (known.first, known.n) == (0, 1)
    assert (others.first, others.n) == (1, 2)


def test_what_a_training_adds_to_its_own_start_is_compared():
    found = {
        "a": {1: answers(1, 1, 1, 0)},
        "b": {1: answers(1, 1, 0, 0)},
        "a-start": {1: answers(1, 1, 0, 0)},
        "b-start": {1: answers(0, 0, 0, 0)},
    }
    gained = [Side(arm=name, minus=f"{name}-start") for name in "ab"]
    judged = judge(expected(gained[0], gained[1]), found)
    assert judged is not None
    assert (judged.first, judged.second, judged.n) == pytest.approx((0.25, 0.5, 4))
    assert judge(expected(Side(arm="a", minus="nowhere"), B), found) is None


def test_what_one_side_lacks_cannot_be_judged():
    assert judge(expected(), {"a": {1: answers(1)}}) is None


def test_an_interval_is_of_the_seeds_means_whatever_their_questions():
    values = [np.array([0.0, 0.1]), np.array([0.2]), np.array([0.35, 0.35, 0.35])]
    found = interval(values)  # of .05, .2, .35: mean .2, deviation .15, t = 4.303
    assert found.value == pytest.approx(0.2)
    assert found.high == pytest.approx(0.2 + 4.303 * 0.15 / math.sqrt(3), abs=1e-4)


def claim(*inequalities: Expected, checks: tuple[Check, ...] = ()) -> Direction:
    return Direction(
        name="kg.x",
        paper="kg",
        claim="x.",
        figures="x",
        place="x",
        manipulated="x",
        margin_from="x",
        expected=inequalities,
        checks=checks,
        departures=("x",),
    )


def test_a_claim_holds_where_all_of_its_inequalities_do():
    found = {"a": seeds(1, 1, 1), "b": seeds(0, 0.1, 0), "c": seeds(0.5, 0.5, 0.6)}
    ahead, behind = expected(), expected(B, A)
    assert rule(claim(ahead), found, seeds=3).verdict == "holds"
    assert rule(claim(ahead, behind), found, seeds=3).verdict == "does not hold"
    assert rule(claim(ahead, expected(A, Side(arm="d"))), found, seeds=3).verdict == "not run"
    near = expected(Side(arm="c"), 0.55, kind="same", margin=0.1)
    assert rule(claim(ahead, near), found, seeds=3).verdict == "undecided"


def test_a_claim_with_seeds_missing_has_no_verdict_yet():
    found = {"a": seeds(1, 1), "b": seeds(0, 0)}
    ruling = rule(claim(expected()), found, seeds=3)
    assert ruling.verdict == "not run"
    assert [one.verdict for one in ruling.judged] == ["not run"]
    assert rule(claim(expected()), found, seeds=2).verdict == "holds"


@pytest.mark.parametrize(
    ("kind", "first", "second", "passes"),
    [
        ("differs", (0.5, 0.6, 0.5), (0.1, 0.2, 0.2), True),
        ("differs", (0.1, 0.2, 0.2), (0.5, 0.6, 0.5), True),
        ("differs", (0.5, 0.1, 0.3), (0.4, 0.2, 0.3), False),
        ("more", (0.5, 0.6, 0.5), (0.1, 0.2, 0.2), True),
        ("more", (0.1, 0.2, 0.2), (0.5, 0.6, 0.5), False),
        ("uncertain", (0.2, 0.4, 0.3), None, True),
        ("uncertain", (0.9, 1, 1), None, False),
        ("uncertain", (0, 0.1, 0), None, False),
        ("room", (1, 1, 0.9), (0.5, 0.6, 0.9), True),
        ("room", (1, 1, 0.9), (0.9, 0.9, 0.9), False),
    ],
)
def test_a_claim_whose_check_fails_cannot_be_seen_whatever_its_interval(
    kind: CheckKind, first: tuple[float, ...], second: tuple[float, ...] | None, passes: bool
):
    found: Found = {"a": seeds(1, 1, 1), "b": seeds(0, 0, 0), "c": seeds(*first), "d": seeds(*(second or ()))}
    check = Check(kind=kind, first=Side(arm="c"), second=Side(arm="d") if second else None, says="x")
    looked = look(check, found, seeds=3)
    assert looked is not None
    assert looked.passed is passes
    assert rule(claim(expected(), checks=(check,)), found, seeds=3).verdict == (
        "holds" if passes else "cannot be seen here"
    )


def test_a_check_that_lacks_answers_leaves_the_claim_unfinished():
    found = {"a": seeds(1, 1, 1), "b": seeds(0, 0, 0), "c": seeds(0.5)}
    check = Check(kind="uncertain", first=Side(arm="c"), says="x")
    assert rule(claim(expected(), checks=(check,)), found, seeds=3).verdict == "not run"
    absent = check.model_copy(update={"first": Side(arm="e")})
    assert rule(claim(expected(), checks=(absent,)), found, seeds=3).verdict == "not run"


def test_the_seeds_without_which_the_verdict_is_another_one_are_named():
    steady = rule(claim(expected()), {"a": seeds(0.5, 0.5, 0.6, 0.55), "b": seeds(0.1, 0.1, 0.2, 0.1)}, seeds=4)
    assert (steady.verdict, dict(steady.left_out)) == ("holds", {})
    # Three seeds agree on .2, one on -.2: only without that one does the interval exclude 0.
    found = {"a": seeds(0.5, 0.5, 0.525, 0.1), "b": seeds(0.3, 0.3, 0.3, 0.3)}
    shaky = rule(claim(expected()), found, seeds=4)
    assert (shaky.verdict, dict(shaky.left_out)) == ("undecided", {4: "holds"})


def test_a_difference_that_holds_by_less_than_the_margin_is_marked_as_small():
    found = {"a": seeds(1, 1, 1), "b": seeds(0, 0, 0)}
    far, near = (judge(expected(margin=margin), found, seeds=3) for margin in (0.5, 1.5))
    assert far is not None
    assert near is not None
    assert (far.verdict, far.is_small) == ("holds", False)
    assert (near.verdict, near.is_small) == ("holds", True)


def test_the_area_of_a_course_is_its_mean_and_its_end_is_the_arms_figure():
    course = [answers(0, 0), answers(1, 0), answers(1, 1)]
    made = points_as_one(
        [{key: {**one, "searches": 2 * n} for key, one in each.items()} for n, each in enumerate(course)]
    )
    assert [made[key]["em"] for key in made] == [1, 1]
    assert [made[key]["area"] for key in made] == pytest.approx([2 / 3, 1 / 3])
    assert [made[key]["area_searches"] for key in made] == pytest.approx([2, 2])
    points = curve("a", {"a": {1: made, 2: made}}, points=3)
    assert [one.value for one in points] == pytest.approx([0, 0.5, 1])
