"""Charts of an office document as tables: what was drawn, by the values that the file keeps of it."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from agent.sources.extract.text import one_line

_A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C: Final = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_MOST_POINTS: Final = 100_000
"""Of one series; more is no chart that a person reads."""


def chart_table(root: Any) -> tuple[str, list[list[str]]]:
    """What a chart is called, and its values: a row for each category, a column for each series; none: no rows."""
    title = one_line("".join(part.text or "" for part in root.iterfind(f".//{_C}chart/{_C}title//{_A}t")))
    series = list(root.iter(f"{_C}ser"))
    names = [_text(each, "tx") or f"Series {at}" for at, each in enumerate(series, start=1)]
    categories = (_points(each, kind) for each in series for kind in ("cat", "xVal"))
    places = next(filter(None, categories), dict[int, str]())
    values = [_points(each, "val") or _points(each, "yVal") for each in series]
    rows = [[places.get(at, ""), *(column.get(at, "") for column in values)] for at in _every((places, *values))]
    if not rows:
        return f"Chart: {title}" if title else "", []
    return f"Chart: {title}" if title else "Chart", [["Category", *names], *rows]


def _text(series: Any, kind: str) -> str:
    return " ".join(part.text or "" for part in series.iterfind(f"{_C}{kind}//{_C}v"))


def _points(series: Any, kind: str) -> dict[int, str]:
    return dict(_numbered(series.iterfind(f"{_C}{kind}//{_C}pt")))


def _numbered(points: Iterator[Any]) -> Iterator[tuple[int, str]]:
    for point in points:
        at = point.get("idx", "")
        if at.isdecimal() and len(at) < 9 and int(at) < _MOST_POINTS:
            yield int(at), one_line(point.findtext(f"{_C}v") or "")


def _every(columns: Sequence[dict[int, str]]) -> list[int]:
    return sorted({at for column in columns for at in column})
