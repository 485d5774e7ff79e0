"""Whether a claim holds, by a rule that was fixed before anything ran: intervals over seeds, and checks.

A difference is paired: the same question in the same world of the same seed, answered by both policies. The interval is
Student's over the seeds' means, each of another training and another world, so it says what other seeds would give.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from lab.reproduce.design import LIKELY, ROOM, Check, Direction, Expected, Side
from lab.reproduce.evaluating import Answers
from lab.reproduce.power import t_interval
from train.evaluation.statistics import Interval, bootstrap

Verdict = Literal["holds", "does not hold", "undecided", "cannot be seen here", "not run"]
Values = NDArray[np.float64]
Found = Mapping[str, Mapping[Any, Answers]]
"""Arm → seed, or set of real questions → its answers."""
Over = Callable[[Sequence[Values]], Interval]
"""From the differences of each seed, or set, to the interval of their mean."""

UNSEEN: Final = "cannot be seen here"
_WORST: Final[tuple[Verdict, ...]] = ("does not hold", "undecided", "holds")


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
class Checked:
    """One check, with what was found."""

    check: Check
    value: Interval
    """Of the difference, or of the start's behaviour."""
    seeds: int
    passed: bool | None
    """None as long as seeds are missing."""


@dataclass(frozen=True)
class Ruling:
    """One direction with all of its inequalities and checks; those without answers are left out."""

    direction: Direction
    judged: tuple[Judged, ...]
    checked: tuple[Checked, ...] = ()
    seeds: int = 1
    """That are wanted of each."""
    left_out: Mapping[int | str, Verdict] = field(default_factory=dict[int | str, Verdict])
    """Seed → the verdict without it, where it is another one."""

    @property
    def verdict(self) -> Verdict:
        """A claim whose checks fail cannot be seen; else it is the worst one of its inequalities."""
        done = len(self.judged) == len(self.direction.expected) and len(self.checked) == len(self.direction.checks)
        if not done or any(one.verdict == "not run" for one in self.judged):
            return "not run"
        if any(one.passed is None for one in self.checked):
            return "not run"
        if not all(one.passed for one in self.checked):
            return UNSEEN
        return next(worst for worst in _WORST if any(one.verdict == worst for one in self.judged))


def interval(by_seed: Sequence[Values]) -> Interval:
    """Student's interval over the seeds' means.

    Args:
        by_seed: of each seed, one difference a question.
    """
    return t_interval([float(values.mean()) for values in by_seed])


def over_questions(by_set: Sequence[Values]) -> Interval:
    """The bootstrap's interval over the questions of all sets: for one greedy policy, which has no seeds."""
    return bootstrap(np.concatenate(by_set))


def rule(direction: Direction, found: Found, *, seeds: int = 1, over: Over = interval) -> Ruling:
    """Judge one direction by what was found so far; a verdict needs all of the seeds.

    Args:
        direction: a claim.
        found: the answers of all arms.
        seeds: that are wanted, or sets of real questions.
        over: how intervals are made.
    """
    ruling = _rule(direction, found, seeds, over)
    if ruling.verdict == "not run" or seeds < 3:  # an interval needs two that are left
        return ruling
    there = {seed for side in direction.sides for seed in found[side.arm]}
    changed: dict[int | str, Verdict] = {}
    for seed in sorted(there, key=str):
        without = _rule(direction, _without(found, seed), seeds - 1, over).verdict
        if without != ruling.verdict:
            changed[seed] = without
    return Ruling(direction, ruling.judged, ruling.checked, seeds, changed)


def _rule(direction: Direction, found: Found, seeds: int, over: Over) -> Ruling:
    judged = (judge(expected, found, seeds=seeds, over=over) for expected in direction.expected)
    checked = (look(check, found, seeds=seeds, over=over) for check in direction.checks)
    return Ruling(
        direction,
        tuple(one for one in judged if one is not None),
        tuple(one for one in checked if one is not None),
        seeds,
    )


def judge(expected: Expected, found: Found, *, seeds: int = 1, over: Over = interval) -> Judged | None:
    """Judge one inequality; None where a side has no answers yet, or nothing is in both."""
    pairs = paired(expected.first, expected.second, found)
    if not pairs:
        return None
    difference = over([first - second for first, second in pairs])
    return Judged(
        expected=expected,
        first=float(np.mean([first.mean() for first, _ in pairs])),
        second=float(np.mean([second.mean() for _, second in pairs])),
        difference=difference,
        n=sum(len(first) for first, _ in pairs),
        seeds=len(pairs),
        verdict=verdict(expected, difference) if len(pairs) >= seeds else "not run",
    )


def look(check: Check, found: Found, *, seeds: int = 1, over: Over = interval) -> Checked | None:
    """Look whether a check passes; None where a side has no answers yet."""
    pairs = paired(check.first, 0.0 if check.second is None else check.second, found)
    if not pairs:
        return None
    value = over([first - second for first, second in pairs])
    match check.kind:
        case "differs":
            passed = value.low > 0 or value.high < 0
        case "more":
            passed = value.low > 0
        case "uncertain":
            passed = LIKELY[0] <= value.value <= LIKELY[1]
        case "room":
            passed = value.value >= ROOM
    return Checked(check, value, len(pairs), passed if len(pairs) >= seeds else None)


def verdict(expected: Expected, difference: Interval) -> Verdict:
    """The rule: whether it holds comes first. The design page has it in words."""
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


def curve(arm: str, found: Found, *, points: int) -> list[Interval]:
    """EM of a trained arm at each of its evaluated steps, over the seeds; empty where it has no answers."""
    by_seed = found.get(arm, {})
    sides = [Side(arm=arm, metric=at_point(point)) for point in range(1, points + 1)]
    values = [[list(own.values()) for one in by_seed.values() if (own := figures(side, one))] for side in sides]
    return [interval([np.array(own) for own in seeds]) for seeds in values if seeds]


def at_point(point: int) -> str:
    """The figure that is the EM at a point of the curve, from 1."""
    return f"em_{point}"


def paired(first: Side, second: Side | float, found: Found) -> list[tuple[Values, Values]]:
    """Of each seed, both sides' figures of the questions that have one in both, in the same order."""
    pairs: list[tuple[Values, Values]] = []
    for seed in found.get(first.arm, {}):
        one = _of_seed(first, found, seed)
        two = _of_seed(second, found, seed) if isinstance(second, Side) else dict.fromkeys(one, second)
        keys = [key for key in one if key in two]
        if keys:
            pairs.append((np.array([one[key] for key in keys]), np.array([two[key] for key in keys])))
    return pairs


def _of_seed(side: Side, found: Found, seed: int) -> dict[str, float]:
    """Question → the figure of a side, less that of the arm that is taken off."""
    own = figures(side, found.get(side.arm, {}).get(seed, {}))
    if not side.minus:
        return own
    start = _of_seed(side.model_copy(update={"arm": side.minus, "metric": "em", "minus": ""}), found, seed)
    return {key: value - start[key] for key, value in own.items() if key in start}


def figures(side: Side, answers: Answers) -> dict[str, float]:
    """Question → the figure of a side, where it applies."""
    return {
        key: float(one[side.metric])
        for key, one in answers.items()
        if one.get(side.metric) is not None
        and (not side.types or one["type"] in side.types)
        and one["type"] not in side.but
    }


def _without(found: Found, seed: int | str) -> Found:
    return {arm: {other: answers for other, answers in own.items() if other != seed} for arm, own in found.items()}
