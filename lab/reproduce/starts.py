"""The start before any training: how probable each behaviour is that a claim is about, and whether it pays."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lab.reproduce.design import BASELINES, LIKELY, Arm, Check, Side
from lab.reproduce.papers import all_arms, directions_of
from lab.reproduce.tables import label
from lab.reproduce.verdict import Found, Values, figures, interval
from train.evaluation.statistics import Interval


@dataclass(frozen=True)
class StartRow:
    """One behaviour of a start."""

    arm: str
    says: str
    share: Interval
    """Its probability, over the seeds' worlds."""
    em_with: float | None
    """EM of the rollouts that show it; None where none does."""
    em_without: float | None

    @property
    def uncertain(self) -> bool:
        return LIKELY[0] <= self.share.value <= LIKELY[1]


def start_arms() -> list[Arm]:
    """What is evaluated without any training: starts, the policy before them, and oracles."""
    ends = tuple(f"-{who}" for who in BASELINES)
    return [arm for arm in all_arms().values() if arm.name.endswith(ends)]


def start_rows(found: Found) -> list[StartRow]:
    """Every behaviour of a start that some claim wants uncertain, as far as it was evaluated."""
    sides = dict.fromkeys(check.first for check in _uncertain_ones())
    return [row for side in sides if (row := _row(side, found)) is not None]


def _uncertain_ones() -> Iterable[Check]:
    return (check for one in directions_of("all") for check in one.checks if check.kind == "uncertain")


def _row(side: Side, found: Found) -> StartRow | None:
    seeds = [answers for _, answers in sorted(found.get(side.arm, {}).items())]
    shown = [figures(side, answers) for answers in seeds]
    if not any(shown):
        return None
    em = [figures(side.model_copy(update={"metric": "em"}), answers) for answers in seeds]
    pairs = [(own[key], one[key]) for own, one in zip(shown, em, strict=True) for key in own if key in one]
    means: list[Values] = [np.array(list(own.values())) for own in shown if own]
    return StartRow(
        arm=side.arm,
        says=label(side),
        share=interval(means),
        em_with=_mean([right for did, right in pairs if did >= 0.5]),
        em_without=_mean([right for did, right in pairs if did < 0.5]),
    )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
