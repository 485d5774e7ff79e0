"""How figures, inequalities and checks are written in the pages of a study."""

import math
from typing import Final

from lab.reproduce.design import Check, Expected, Side
from lab.reproduce.verdict import Checked, Judged, Ruling, Verdict
from train.evaluation.statistics import Interval

MARKS: Final[dict[Verdict, str]] = {
    "holds": "**holds**",
    "does not hold": "**does not hold**",
    "undecided": "undecided",
    "cannot be seen here": "cannot be seen here",
    "not run": "not finished",
}
SIGNS: Final = {"more": ">", "same": "≈", "no_more": "≤"}
LABELS: Final = {
    "em": "EM",
    "f1": "F1",
    "area": "EM, area under the curve",
    "policy_tokens": "policy tokens",
    "gold_found": "gold passages found",
    "all_gold": "all gold passages found",
    "queries": "queries a round",
    "three_queries": "rounds of three queries",
    "merge_gold": "merges with the answer",
    "evidence_gold": "evidence with the answer",
    "answer_shown": "answer among the passages",
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
    name += f" above `{side.minus}`" if side.minus else ""
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


def looked(one: Checked | None) -> str:
    """What a check found, and whether it passed."""
    if one is None:
        return "– | not finished"
    passed = {True: "passed", False: "**failed**", None: "not finished"}[one.passed]
    return f"{with_bounds(one.value)} | {passed}"


def row(expected: Expected, one: Judged | None, seeds: int) -> str:
    """A line of a table of inequalities."""
    start = f"| {inequality(expected)}"
    if one is None:
        return f"{start} | – | – | – | {expected.margin:g} | – | not finished |"
    return (
        f"{start} | {one.first:.3f} | {one.second:.3f} | {with_bounds(one.difference)} | {expected.margin:g} | "
        f"{one.n:,}, {one.seeds} | "
        f"{MARKS[one.verdict] if one.seeds >= seeds else f'{seeds - one.seeds} seeds missing'}"
        f"{', by less than the margin' if one.is_small else ''} |"
    )


def verdict_of(one: Ruling) -> str:
    """A verdict; with how much, where that is little."""
    small = any(judged.is_small for judged in one.judged) and one.verdict == "holds"
    return MARKS[one.verdict] + (", by less than the margin" if small else "")
