"""The dates that search APIs send, as ISO dates: timestamps, mail dates, "2 weeks ago", "3. November 2026".

A text that says no date is "", never a guess. Relative times count back from `now`, in UTC.
"""

import re
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

MAX_CHARS: Final = 48
"""No date is longer, and trying every language on a long text takes its time."""

_DAYS: Final = {"s": 1 / 86400, "min": 1 / 1440, "h": 1 / 24, "d": 1.0, "w": 7.0, "mo": 30.0, "y": 365.0}
_AGO: Final = re.compile(
    r"(?:about\s+|over\s+)?(?P<count>\d{1,5}|an?|one)\s*"
    r"(?P<unit>s(?:ec(?:ond)?s?)?|min(?:ute)?s?|m(?=\s)|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:(?:ee)?ks?)?|mo(?:n(?:th)?)?s?"
    r"|y(?:(?:ea)?rs?)?)\s+ago",
    re.IGNORECASE,
)
_NEAR: Final = {"just now": 0, "now": 0, "today": 0, "yesterday": 1}
_ISO: Final = re.compile(
    r"(\d{4})(?P<mark>[-/.])(\d{1,2})(?P=mark)(\d{1,2})"
    r"(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2})?)(?:[.,]\d+)?\s*(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?)?"
)
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
_EPOCH: Final = date(1970, 1, 1)
_NUMBERS: Final = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
_LANGUAGES: Final = tuple(
    "en de fr es it pt nl sv da nb fi pl cs sk hu ro bg el ru uk tr ar he hi id vi th ja ko zh".split()
)
"""Tried where the language is not known; to try all 200 takes a second for a text that is no date."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def iso_date(value: object, *, now: datetime, lang: str = "") -> str:
    """Read one date.

    Args:
        value: what the API sent; anything but text is no date.
        now: what relative times count back from; with a time zone.
        lang: the code of the language that the text is likely in, where that is known.

    Returns:
        `2026-11-03`; `2026-11` or `2026` where the text says no more; "" where it says no date.
    """
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text or len(text) > MAX_CHARS:
        return ""
    lang = lang.lower()[:2]
    day = _iso(text) or _ago(text, now=now) or _mail(text) or _numbers(text, lang)
    if day is not None:
        return day.isoformat()
    if _YEAR.fullmatch(text):
        return text
    if not any(letter.isalpha() for letter in text):
        return ""  # a time, a number, or 03/04/2026
    if not any(letter.isdigit() for letter in text) and not lang:
        return ""  # "gestern" of an unknown language is no reason to try them all
    return _spoken(text, now.astimezone(UTC).replace(second=0, microsecond=0, tzinfo=None), lang)


def _iso(text: str) -> date | None:
    """`2026-11-03` or `2026/11/3`, or a timestamp: its day in UTC, and its own day where it names no zone."""
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    try:
        day = date(int(match[1]), int(match[3]), int(match[4]))
        if (zone := match["zone"]) and zone[0] in "+-":
            zone = zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"
            return datetime.fromisoformat(f"{day}T{match['time']}{zone}").astimezone(UTC).date()
    except (ValueError, OverflowError):
        return None
    return day


def _ago(text: str, *, now: datetime) -> date | None:
    folded = text.casefold()
    if folded in _NEAR:
        return (now.astimezone(UTC) - timedelta(days=_NEAR[folded])).date()
    match = _AGO.fullmatch(folded)
    if match is None:
        return None
    count = int(match["count"]) if match["count"].isdigit() else 1
    unit = "min" if match["unit"] == "m" else next(u for u in ("min", "mo", *_DAYS) if match["unit"].startswith(u))
    try:
        return (now.astimezone(UTC) - timedelta(days=count * _DAYS[unit])).date()
    except OverflowError:
        return None


def _mail(text: str) -> date | None:
    """`Tue, 03 Nov 2026 08:00:00 GMT`: its day in UTC."""
    if "," not in text or ":" not in text:
        return None
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo is None else moment.astimezone(UTC)).date()
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def _numbers(text: str, lang: str) -> date | None:
    """`03.04.2026` and `13/04/2026`; `03/04/2026` only where the language says which of them is the day."""
    match = _NUMBERS.fullmatch(text)
    if match is None:
        return None
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    if match[2] == "." or first > 12 or first == second or lang not in {"", "en"}:
        day, month = first, second
    elif second > 12 or lang == "en":
        day, month = second, first
    else:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _spoken(text: str, now: datetime, lang: str) -> str:
    """Dates in words. Only what lies between 1970 and a year from now is believed."""
    from dateparser.date import DateDataParser  # only where an API sends such dates

    settings = {
        "RELATIVE_BASE": now,
        "TIMEZONE": "UTC",
        "TO_TIMEZONE": "UTC",
        "RETURN_AS_TIMEZONE_AWARE": False,
        "PREFER_DATES_FROM": "past",
    }
    for languages in ([lang], [*_LANGUAGES]) if lang in _LANGUAGES else ([*_LANGUAGES],):
        try:
            found = DateDataParser(languages=languages, settings=settings).get_date_data(text)
        except (ValueError, OverflowError, TypeError, RecursionError):  # a date beyond all years
            continue
        moment: datetime | None = found["date_obj"]
        if moment is None or not _EPOCH <= moment.date() <= now.date() + timedelta(days=366):
            continue
        lengths = {"year": len("2026"), "month": len("2026-11")}
        length = lengths.get(str(found["period"])) if _YEAR.search(text) else None
        return moment.date().isoformat()[:length]
    return ""
