"""Percentiles of what a bench measured."""

from collections.abc import Sequence
from statistics import quantiles


def percentiles(values: Sequence[float]) -> list[float]:
    """The first to the 99th; of a single value that value, of none zeros."""
    return quantiles(values, n=100, method="inclusive") if len(values) > 1 else [*values, 0.0][:1] * 99
