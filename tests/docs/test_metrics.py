"""The page of operations lists every metric with its labels, and no others."""

import ast
import re
from collections.abc import Iterator

from tests.docs.blocks import ROOT

_ROW = re.compile(r"^\| (`cairn_[^|]*) \| ([^|]*)\|$", re.MULTILINE)
_QUOTED = re.compile(r"`(\w+)`")


def listed() -> dict[str, set[str]]:
    """Name → labels, as the page has them."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    return {
        name: set(_QUOTED.findall(labels)) for names, labels in _ROW.findall(page) for name in _QUOTED.findall(names)
    }


def made() -> Iterator[tuple[str, set[str]]]:
    """The same, as the code makes them: prometheus_client does not tell the labels of a metric without a sample."""
    code = ast.parse((ROOT / "server" / "telemetry" / "meters.py").read_text(encoding="utf-8"))
    for call in ast.walk(code):
        match call:
            case ast.Call(func=ast.Name("Counter" | "Gauge" | "Histogram"), args=[ast.Constant(str(name)), _, *labels]):
                yield name, {label for one in labels for label in ast.literal_eval(one)}
            case _:
                pass


def test_the_page_lists_every_metric_with_its_labels() -> None:
    assert listed() == dict(made())
