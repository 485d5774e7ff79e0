"""Plots as inline SVG with coordinates in percent: they fill the page's width, and their text keeps its size.

Nothing here knows questions: rows and values come in, escaped markup goes out. Colours are classes of the page's style.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

HEIGHT: Final = 110
"""Pixels of a histogram's bars."""
MOST_BINS: Final = 12
LABEL: Final = 28
"""Characters of a row's name."""
_STEPS: Final = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval, and over how many questions."""

    label: str
    n: int
    mean: float
    low: float
    high: float


def estimates(rows: Sequence[Estimate], *, low: float = 0.0, high: float = 1.0, figure: str = "EM") -> str:
    """A dot for each mean and a line for its interval, on one axis from `low` to `high`; a signed one marks zero."""

    def at(value: float) -> str:
        return f"{4 + 92 * (value - low) / (high - low):.2f}%"

    grid = "".join(f'<line class="grid" x1="{at(tick)}" x2="{at(tick)}" y1="0" y2="26"/>' for tick in _ticks(low, high))
    sign = "+" if low < 0 else ""
    if low < 0 < high:
        grid += f'<line class="zero" x1="{at(0)}" x2="{at(0)}" y1="0" y2="26"/>'
    body = "".join(
        f'<tr><th scope="row">{escape(_short(row.label))}</th><td class="plot">'
        f'<svg height="26" role="img"><title>{escape(_said(row, figure))}</title>{grid}'
        f'<line class="range" x1="{at(row.low)}" x2="{at(row.high)}" y1="13" y2="13"/>'
        f'<circle class="dot" cx="{at(row.mean)}" cy="13" r="5"/></svg></td>'
        f'<td class="number">{row.mean:{sign}.3f}</td><td class="number quiet">{row.n:,}</td></tr>'
        for row in rows
    )
    axis = "".join(f'<text x="{at(tick)}" y="12" text-anchor="middle">{tick:g}</text>' for tick in _ticks(low, high))
    return (
        '<table class="estimates"><thead><tr><th></th>'
        f'<td class="plot quiet">{escape(figure)} with its 95 % interval</td>'
        f'<th scope="col" class="number">{escape(figure)}</th><th scope="col" class="number">n</th></tr></thead>'
        f'<tbody>{body}</tbody><tfoot aria-hidden="true"><tr><td></td><td class="plot">'
        f'<svg height="16">{axis}</svg></td><td></td><td></td></tr></tfoot></table>'
    )


def _short(label: str) -> str:
    return label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"


def _said(row: Estimate, figure: str) -> str:
    return f"{row.label}: {figure} {row.mean:.3f}, 95 % {row.low:.3f} to {row.high:.3f}, {row.n} questions"


def _ticks(low: float, high: float) -> list[float]:
    return [round(low + (high - low) * part / 4, 4) for part in range(5)]


@dataclass(frozen=True, slots=True)
class Bin:
    """From `low`, included, to `high`, excluded; None: all that is above."""

    low: float
    high: float | None


_LEAST: Final = 1e-6
"""Below this a value is 0 to a reader: edges are rounded to nine places."""


def bins(values: Sequence[float], *, whole: bool) -> list[Bin]:
    """Bins of one round width over the values; a long tail (above the 99th percentile) shares the last, open one."""
    if not values:
        return []
    ordered = sorted(values)
    body = ordered[math.ceil(0.99 * len(ordered)) - 1]
    start, end = (math.floor(ordered[0]), math.floor(body) + 1) if whole else (0.0, body if body > _LEAST else 1.0)
    width = max(_round_up((end - start) / MOST_BINS), 1 if whole else 0)
    start = math.floor(start / width) * width
    count = max(1, math.ceil((end - start) / width - 1e-9))
    edges = [round(start + width * step, 9) for step in range(count + 1)]
    if ordered[-1] >= edges[-1]:
        return [*(Bin(*pair) for pair in pairwise(edges)), Bin(edges[-1], None)]
    return [Bin(*pair) for pair in pairwise(edges)]


def _round_up(width: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50 … (and their tenths) that is not smaller."""
    if width <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(width))
    return next(step * power for step in _STEPS if step * power >= width * (1 - 1e-9))


def histogram(title: str, right: Sequence[float], others: Sequence[float], *, whole: bool) -> str:
    """How often each value occurs; the right answers are the lower part of every bar."""
    table = bins([*right, *others], whole=whole)
    counts = [(_count(right, bin_), _count(others, bin_)) for bin_ in table]
    top = max((a + b for a, b in counts), default=0) or 1
    width = 100 / max(len(table), 1)
    bars = "".join(
        _bar(bin_, count, top=top, x=width * place, width=width, whole=whole)
        for place, (bin_, count) in enumerate(zip(table, counts, strict=True))
    )
    shift = 0.5 if whole and all(bin_.high in (None, bin_.low + 1) for bin_ in table) else 0.0
    stride = math.ceil(len(table) / 8)
    axis = "".join(
        f'<text x="{width * (place + shift):.2f}%" y="{HEIGHT + 34}" text-anchor="middle">{_low(bin_)}</text>'
        for place, bin_ in enumerate(table)
        if place % stride == 0
    )
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg height="{HEIGHT + 40}" role="img" '
        f'aria-label="{escape(title)}: histogram"><line class="axis" x1="0" x2="100%" y1="{HEIGHT + 18}" '
        f'y2="{HEIGHT + 18}"/>{bars}{axis}</svg></figure>'
    )


def _count(values: Sequence[float], bin_: Bin) -> int:
    return sum(bin_.low <= value and (bin_.high is None or value < bin_.high) for value in values)


def _bar(bin_: Bin, counts: tuple[int, int], *, top: int, x: float, width: float, whole: bool) -> str:
    good, rest = (HEIGHT * count / top for count in counts)
    base, total = HEIGHT + 18, sum(counts)
    if not total:
        return ""
    place = f'x="{x + width * 0.08:.2f}%" width="{width * 0.84:.2f}%"'
    said = f"{_range(bin_, whole=whole)}: {total} questions, {counts[0]} of them right"
    top_y = base - good - rest
    return (
        f"<g><title>{escape(said)}</title>"
        f'<rect class="good" {place} y="{base - good:.1f}" height="{good:.1f}"/>'
        f'<rect class="rest" {place} y="{top_y:.1f}" height="{rest:.1f}"/>'
        f'<text class="count" x="{x + width / 2:.2f}%" y="{top_y - 4:.1f}" text-anchor="middle">{total}</text></g>'
    )


def _range(bin_: Bin, *, whole: bool) -> str:
    if bin_.high is None:
        return f"{bin_.low:g} and more"
    if whole and bin_.high - bin_.low == 1:
        return f"{bin_.low:g}"
    return f"{bin_.low:g} to under {bin_.high:g}"


def _low(bin_: Bin) -> str:
    return f"{bin_.low:g}+" if bin_.high is None else f"{bin_.low:g}"


def bars(rows: Sequence[tuple[str, int, str]]) -> str:
    """Counts as bars from one line; a row is (label, count, class of its colour)."""
    top = max((count for _, count, _ in rows), default=0) or 1
    total = sum(count for _, count, _ in rows) or 1
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th><td class="plot"><svg height="20" aria-hidden="true">'
        f'<rect class="{kind}" x="0" y="3" height="14" width="{100 * count / top:.2f}%" rx="2"/></svg></td>'
        f'<td class="number">{count:,}</td><td class="number quiet">{count / total:.1%}</td></tr>'
        for label, count, kind in rows
    )
    return f'<table class="estimates bars"><tbody>{body}</tbody></table>'
