import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from train.safety.rules import DEFAULT_RULES, Collapsed, Rule, Safety, check

CLOSED = Rule(name="no answers", figure="answer/closed_share", below=0.5, steps=3, fix="go back")


def history(*values: float, name: str = "answer/closed_share") -> list[tuple[int, dict[str, float]]]:
    return [(step, {name: value}) for step, value in enumerate(values, start=1)]


def test_a_rule_that_is_broken_long_enough_stops_the_run_with_its_name_its_figures_and_the_fix() -> None:
    check([CLOSED], history(0.9, 0.4, 0.3))
    with pytest.raises(Collapsed) as stopped:
        check([CLOSED], history(0.9, 0.4, 0.3, 0.25))
    assert str(stopped.value) == (
        "the run stopped itself at step 4: no answers: answer/closed_share was below 0.5 in the last 3 steps "
        "(0.4, 0.3, 0.25); go back"
    )


def test_one_good_step_begins_the_count_again() -> None:
    check([CLOSED], history(0.4, 0.3, 0.6, 0.3, 0.2))


def test_a_step_without_the_figure_is_skipped() -> None:
    untold = [(4, dict[str, float]())]
    check([CLOSED], [*history(0.4, 0.3, 0.2)[:2], *untold])
    with pytest.raises(Collapsed):
        check([CLOSED], [*history(0.4, 0.3), *untold, (5, {"answer/closed_share": 0.1})])


def test_steps_before_the_rule_begins_do_not_count() -> None:
    late = CLOSED.model_copy(update={"after": 3})
    check([late], history(0.1, 0.1, 0.1, 0.1, 0.1))
    with pytest.raises(Collapsed):
        check([late], history(0.1, 0.1, 0.1, 0.1, 0.1, 0.1))


def test_a_figure_that_is_no_number_breaks_a_rule_at_once() -> None:
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(Collapsed, match="trainer/loss is"):
            check(DEFAULT_RULES, history(0.3, value, name="trainer/loss"))


def test_a_part_that_stays_flat_at_its_lowest_is_seen_and_one_that_moves_is_not() -> None:
    flat = Rule(name="dead", figure="reward/*_highest", below=0.01, flat=0.001, steps=3, fix="look at the reward")
    check([flat], history(0.005, 0.009, 0.002, name="reward/merge_highest"))
    check([flat], history(1.0, 1.0, 1.0, name="reward/merge_highest"))
    with pytest.raises(Collapsed, match="reward/merge_highest"):
        check([flat], history(0.0, 0.0, 0.0, name="reward/merge_highest"))


def test_two_bounds_make_a_band() -> None:
    band = Rule(name="band", figure="x", above=1.0, below=2.0, fix="leave it")
    for value in (0.5, 1.0, 2.0, 3.0):
        check([band], history(value, name="x"))
    with pytest.raises(Collapsed):
        check([band], history(1.5, name="x"))


@given(st.lists(st.floats(0.5, 1.0), min_size=1, max_size=30))
def test_a_run_whose_figures_are_good_is_never_stopped(values: list[float]) -> None:
    good = {"search/failed_share": 0.0, "masked/share": 0.1, "trainer/entropy": 0.5, "trainer/kl": 0.1}
    steps = [
        (step, {**good, "answer/closed_share": value, "reward/total_std": value})
        for step, value in enumerate(values, 1)
    ]
    for end in range(1, len(steps) + 1):
        check(DEFAULT_RULES, steps[:end])


def test_the_default_rules_see_each_collapse_that_they_are_for() -> None:
    collapses = {
        "every search of the step failed": ("search/failed_share", [1.0]),
        "searches find nothing": ("search/empty_share", [0.95] * 3),
        "nothing is left to learn from": ("masked/share", [0.9] * 3),
        "answers are no longer closed": ("answer/closed_share", [0.1] * 5),
        "rollouts run into their length limit": ("length/limit_share", [0.8] * 5),
        "the policy always writes the same": ("trainer/entropy", [0.0] * 10),
        "the policy writes noise": ("trainer/entropy", [6.0] * 3),
        "the policy has left its reference": ("trainer/kl", [9.0] * 5),
        "the loss exploded": ("trainer/loss", [1e6]),
        "every rollout gets the same reward": ("reward/total_std", [0.0] * 20),
    }
    assert set(collapses) == {rule.name for rule in DEFAULT_RULES}
    for name, (figure, values) in collapses.items():
        check(DEFAULT_RULES, history(*values[:-1], name=figure) or [(0, {})])
        with pytest.raises(Collapsed, match=name):
            check(DEFAULT_RULES, history(*values, name=figure))


def test_a_rule_without_a_bound_is_refused() -> None:
    with pytest.raises(ValidationError, match="has no bound"):
        Rule(name="empty", figure="x", fix="")


def test_a_recipe_replaces_adds_and_leaves_out_rules() -> None:
    said = {
        "without": ["searches find nothing"],
        "rules": [
            {"name": "answers are no longer closed", "figure": "answer/closed_share", "below": 0.8, "fix": "go back"},
            {"name": "own", "figure": "search/mean", "above": 9.0, "fix": "go back"},
        ],
    }
    rules = {rule.name: rule for rule in Safety.model_validate(said).all_rules}
    assert "searches find nothing" not in rules
    assert rules["answers are no longer closed"].below == 0.8
    assert "own" in rules
    assert len(rules) == len(DEFAULT_RULES)


def test_a_default_rule_that_there_is_not_cannot_be_left_out() -> None:
    with pytest.raises(ValidationError, match="no default rule 'searchs'"):
        Safety(without=("searchs",))
