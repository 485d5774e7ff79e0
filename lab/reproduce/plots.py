"""A paper's differences with their intervals as SVG; readable on light and dark pages."""

from collections.abc import Collection, Mapping, Sequence
from html import escape
from math import isfinite
from typing import Final

from lab.reproduce.design import Side
from lab.reproduce.verdict import Judged, Ruling, Verdict

COLOURS: Final[dict[Verdict, str]] = {
    "holds": "#3f9142",
    "does not hold": "#b8572b",
    "undecided": "#2b7fb8",
    "cannot be seen here": "#8a6fb0",
    "not run": "#777",
}
_LEFT, _WIDTH, _ROW, _TOP, _VALUES = 330, 300, 22, 34, 150
_SHARES: Final = frozenset({"em", "f1", "area"})
_LINES: Final = ("#2b7fb8", "#b8572b", "#3f9142", "#8a6fb0", "#b08a2b", "#4a9a9a", "#a34a7a", "#777777")
_PLOT: Final = (60, 420, 24, 260)
"""Left, right, top and bottom of the curves."""


def forest(rulings: Sequence[Ruling], title: str) -> str:
    """One line a difference of shares: what was claimed, its interval, the margin of each.

    Differences of counts (searches, rounds, tokens) have other units and are in the tables alone.
    """
    lines = [
        (ruling, one)
        for ruling in rulings
        for one in ruling.judged
        if is_share(one) and isfinite(one.difference.low) and isfinite(one.difference.high)
    ]
    height = _TOP + _ROW * max(1, len(lines)) + 30 + _ROW
    reach = max((abs(b) for _, one in lines for b in (one.difference.low, one.difference.high)), default=0.1)
    reach = max(0.1, min(1.0, reach * 1.1))
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + _VALUES} {height}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#777" stroke="none">',
        f"<title>{escape(title)}</title>",
        f'<text x="{_LEFT + _WIDTH / 2}" y="16" text-anchor="middle">first − second</text>',
    ]
    for share in (-1.0, -0.5, 0.0, 0.5, 1.0):
        x, weight = _x(share * reach, reach), ".6" if share == 0 else ".25"
        drawn.append(f'<path d="M{x:.1f} {_TOP - 8}V{height - 26 - _ROW}" stroke="#777" stroke-opacity="{weight}"/>')
        drawn.append(f'<text x="{x:.1f}" y="{height - 10 - _ROW}" text-anchor="middle">{share * reach:+.2f}</text>')
    for place, (ruling, one) in enumerate(lines):
        drawn += _line(ruling, one, _TOP + _ROW * place + _ROW / 2, reach)
    return "\n".join([*drawn, *_legend({one.verdict for _, one in lines}, height - 8), "</svg>"]) + "\n"


def curves(arms: Mapping[str, Sequence[tuple[float, float, float]]], title: str, *, every: int) -> str:
    """The course of EM of each trained arm, with its interval at every evaluated step.

    Args:
        arms: name → value and bounds at each point.
        title: of the plot.
        every: steps from one point to the next.
    """
    left, right, top, bottom = _PLOT
    points = max(len(course) for course in arms.values())
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + 250} {bottom + 40}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#777" stroke="none">',
        f"<title>{escape(title)}</title>",
        f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#777" stroke-opacity=".6"/>',
    ]
    drawn += [
        f'<text x="{left - 8}" y="{_up(share) + 4:.1f}" text-anchor="end">{share:g}</text>'
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    for point in range(1, points + 1):
        x = _along(point, points)
        drawn.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{point * every}</text>')
    for place, (name, course) in enumerate(arms.items()):
        drawn += _curve(name, course, place, points)
    return "\n".join([*drawn, "</svg>"]) + "\n"


def _curve(name: str, course: Sequence[tuple[float, float, float]], place: int, points: int) -> list[str]:
    colour, (_, right, top, _) = _LINES[place % len(_LINES)], _PLOT
    places = [(_along(at, points) + 2 * place, *values) for at, values in enumerate(course, start=1)]
    path = " L".join(f"{x:.1f} {_up(value):.1f}" for x, value, _, _ in places)
    bounds = "".join(
        f"M{x:.1f} {_up(low):.1f}V{_up(high):.1f}" for x, _, low, high in places if isfinite(low) and isfinite(high)
    )
    y = top + 18 * place
    return [
        f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        f'<path d="{bounds or "M0 0"}" fill="none" stroke="{colour}" stroke-opacity=".5"/>',
        f'<text x="{right + 24}" y="{y}" fill="{colour}">{escape(name)}</text>',
    ]


def _along(point: int, points: int) -> float:
    left, right, _, _ = _PLOT
    return left + (right - left - 30) * point / points


def _up(share: float) -> float:
    _, _, top, bottom = _PLOT
    return bottom - (bottom - top) * max(0.0, min(1.0, share))


def is_share(one: Judged) -> bool:
    """Whether the difference is one of shares from 0 to 1."""
    metric = one.expected.first.metric
    return metric in _SHARES or metric.startswith("em_")


def _line(ruling: Ruling, one: Judged, y: float, reach: float) -> list[str]:
    colour, found = COLOURS[one.verdict], one.difference
    low, high, at = (_x(value, reach) for value in (found.low, found.high, found.value))
    name = escape(ruling.direction.name + _against(one))
    said = escape(f"{found.value:+.3f} ({found.low:+.3f} to {found.high:+.3f})")
    return [
        f'<text x="{_LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{name}</text>',
        f'<path d="M{low:.1f} {y:.1f}H{high:.1f}" stroke="{colour}" stroke-width="2"/>',
        f'<circle cx="{at:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{one.verdict}</title></circle>',
        f'<text x="{_LEFT + _WIDTH + 8}" y="{y + 4:.1f}" fill="{colour}">{said}</text>',
    ]


def _legend(verdicts: Collection[Verdict], y: float) -> list[str]:
    """What the colours of those that occur mean."""
    drawn: list[str] = []
    for place, (verdict, colour) in enumerate(one for one in COLOURS.items() if one[0] in verdicts):
        x = _LEFT - 120 + 125 * place
        drawn.append(f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{colour}"/>')
        drawn.append(f'<text x="{x + 9}" y="{y}">{verdict}</text>')
    return drawn


def _against(one: Judged) -> str:
    second = one.expected.second
    return f" / {second.arm}" if isinstance(second, Side) else ""


def _x(value: float, reach: float) -> float:
    return _LEFT + (max(-reach, min(reach, value)) + reach) / (2 * reach) * _WIDTH
