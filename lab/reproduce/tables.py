"""How figures, inequalities and checks are written in the pages of a study."""

import math
from typing import Final

from lab.reproduce.design import Check, Expected, Side
from train.evaluation.statistics import Interval

SIGNS: Final = {"more": ">", "same": "≈", "no_more": "≤"}
LABELS: Final = {
    "em": "EM",
    "f1": "F1",
    "area": "EM, area under the curve",
    "policy_tokens": "policy tokens",
    "gold_found": "gold passages found",
    "queries": "queries a round",
    "three_queries": "rounds of three queries",
    "merge_gold": "merges with the answer",
    "evidence_gold": "evidence with the answer",
    "searched": "searched at all",
    "repeated": "repeated a search",
    "em_evidence": "EM from the evidence",
    "em_top_5": "EM from plain retrieval, top 5",
    "em_as_many_as_fit": "EM from plain retrieval, as many as fit",
    "given_evidence": "gold given, evidence",
    "given_top_5": "gold given, top 5",
}


def label(side: Side) -> str:
    """A figure in words, with the questions that it is of."""
    bare = side.metric.removeprefix("area_")
    name = LABELS.get(bare, bare) + (" over the course" if bare != side.metric else "")
    only = f", {', '.join(side.types)} only" if side.types else ""
    return f"{name}{only}" + (f", but {', '.join(side.but)}" if side.but else "")


def inequality(expected: Expected) -> str:
    """`a` > `b`: EM."""
    second = expected.second
    against = f"`{second.arm}`" if isinstance(second, Side) else f"{second:g}"
    figure = label(expected.first)
    if isinstance(second, Side) and second.metric != expected.first.metric:
        figure = f"{figure} − {label(second)}"
    return f"`{expected.first.arm}` {SIGNS[expected.kind]} {against}: {figure}"


def checked(check: Check) -> str:
    """What a check looks at, in words and by arms."""
    one, two = check.first, check.second
    if two is None:
        return f"{check.says} (`{one.arm}`, {label(one)})"
    link = {"more": ">", "differs": "≠", "room": "−"}[check.kind]
    figure = label(one) if two.metric == one.metric else f"{label(one)}, {label(two)}"
    return f"{check.says} (`{one.arm}` {link} `{two.arm}`: {figure})"


def with_bounds(interval: Interval, sign: str = "+") -> str:
    """A value with its bounds; without them where one seed has none."""
    if not math.isfinite(interval.low):
        return f"{interval.value:{sign}.3f} (one seed)"
    return f"{interval.value:{sign}.3f} ({interval.low:{sign}.3f} to {interval.high:{sign}.3f})"
