"""Numbers that other servers send. JSON and headers can hold anything; what is no usable number is None here."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

MOST_COUNT: Final = 10_000_000
"""Of one reply: tokens, searches. Sums over a long rollout still fit a 32-bit column."""
MOST_AMOUNT: Final = 1e9
"""Of one reply: credits, money."""
LONGEST_WAIT_SECONDS: Final = 86_400.0
"""No server is left alone for longer than a day because it says so."""
_DECIMAL: Final = re.compile(r"\d+(\.\d*)?", re.ASCII)


def count(value: object, *, most: int = MOST_COUNT) -> int | None:
    """A whole number from 0 to `most`, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        return None
    return int(value) if int(value) == value else None


def amount(value: object, *, most: float = MOST_AMOUNT) -> float | None:
    """A finite number from 0 to `most`, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        return None
    return float(value)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to be left alone, at most a day; None where it says nothing that can be read.

    Args:
        headers: of its answer: `retry-after-ms`, or `retry-after` in seconds or as a date.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if _DECIMAL.fullmatch(value):
            return min(float(value) * unit, LONGEST_WAIT_SECONDS)
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
        wait = (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(wait, 0.0), LONGEST_WAIT_SECONDS)
