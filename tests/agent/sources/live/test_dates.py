"""Whatever a search API writes for a date becomes an ISO date, or nothing."""

import re
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.sources.live.dates import MAX_CHARS, iso_date

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-11-03", "2026-11-03"),
        ("2025-09-30T19:38:25Z", "2025-09-30"),
        ("2026-11-03T10:00:00.123456Z", "2026-11-03"),
        ("2026-11-03T10:00:00", "2026-11-03"),
        ("2026-11-03 10:00:00", "2026-11-03"),
        ("2026/11/3", "2026-11-03"),
        ("2026.11.03", "2026-11-03"),
        ("2026-11-03T23:30:00-05:00", "2026-11-04"),
        ("2026-11-03T00:30:00+0200", "2026-11-02"),
        ("Sun, 22 Jun 2025 08:00:00 GMT", "2025-06-22"),
        ("Sun, 22 Jun 2025 23:30:00 -0500", "2025-06-23"),
        ("Nov 3, 2026", "2026-11-03"),
        ("3 Nov 2026", "2026-11-03"),
        ("November 3, 2026", "2026-11-03"),
        ("3. November 2026", "2026-11-03"),
        ("3 de noviembre de 2026", "2026-11-03"),
        ("2026年11月3日", "2026-11-03"),
        ("03.04.2026", "2026-04-03"),
        ("13/04/2026", "2026-04-13"),
        ("04/13/2026", "2026-04-13"),
        ("Nov 20", "2026-11-20"),
        ("Dec 24", "2025-12-24"),
        ("2024", "2024"),
        ("May 2025", "2025-05"),
    ],
)
def test_dates_in_the_forms_that_apis_use(text: str, wanted: str):
    assert iso_date(text, now=NOW) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("just now", "2026-11-21"),
        ("2 minutes ago", "2026-11-21"),
        ("5 m ago", "2026-11-21"),
        ("3 hours ago", "2026-11-21"),
        ("4 hours ago", "2026-11-20"),
        ("an hour ago", "2026-11-21"),
        ("1 day ago", "2026-11-20"),
        ("2d ago", "2026-11-19"),
        ("yesterday", "2026-11-20"),
        ("2 weeks ago", "2026-11-07"),
        ("1 mo ago", "2026-10-22"),
        ("2 months ago", "2026-09-22"),
        ("1 year ago", "2025-11-21"),
        ("vor 2 Wochen", "2026-11-07"),
        ("vor 3 Tagen", "2026-11-18"),
        ("hace 3 días", "2026-11-18"),
        ("il y a 3 heures", "2026-11-21"),
        ("2週間前", "2026-11-07"),
        ("3天前", "2026-11-18"),
    ],
)
def test_relative_dates_count_back_from_now(text: str, wanted: str):
    assert iso_date(text, now=NOW) == wanted


def test_now_may_be_in_any_zone():
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-8)))
    assert iso_date("yesterday", now=elsewhere) == iso_date("yesterday", now=NOW) == "2026-11-20"


def test_a_known_language_settles_what_would_be_a_guess():
    assert iso_date("gestern", now=NOW) == ""
    assert iso_date("gestern", now=NOW, lang="de") == "2026-11-20"
    assert iso_date("03/04/2026", now=NOW) == ""
    assert iso_date("03/04/2026", now=NOW, lang="fr") == "2026-04-03"
    assert iso_date("03/04/2026", now=NOW, lang="en") == "2026-03-04"
    assert iso_date("3 days ago", now=NOW, lang="de") == "2026-11-18"
    assert iso_date("2 days ago", now=NOW, lang="xx") == "2026-11-19"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "12",
        "1234567890",
        "10:30",
        "2026-13-45",
        "0000-00-00",
        "31.02.2026",
        "November 31, 2026",
        "99999 years ago",
        "x" * (MAX_CHARS + 1),
        None,
        12,
        ["2026"],
    ],
)
def test_what_is_no_date_is_none(text: object):
    assert iso_date(text, now=NOW) == ""


@settings(max_examples=60)
@given(st.text(alphabet="0123456789-/.: TZagodyswekmnth,年前", max_size=20) | st.text(max_size=12))
def test_any_text_gives_an_iso_date_or_nothing(text: str):
    found = iso_date(text, now=NOW)
    assert not found or re.fullmatch(r"\d{4}(-\d{2}(-\d{2})?)?", found)
    if len(found) == len("2026-11-03"):
        date.fromisoformat(found)


@given(st.dates(min_value=date(1971, 1, 1), max_value=date(2026, 11, 21)))
def test_every_day_is_read_back(day: date):
    for text in (f"{day}", f"{day}T12:00:00Z", f"{day:%d.%m.%Y}", f"{day:%a, %d %b %Y 12:00:00 GMT}"):
        assert iso_date(text, now=NOW) == day.isoformat()
