from datetime import date

import pytest

from agent.plan import Filter
from agent.sources.filters import ReadFilters, on_wanted_host, read_filters, unhonoured


def filters(*pairs: tuple[str, str]) -> list[Filter]:
    return [Filter(name=name, value=value) for name, value in pairs]


@pytest.mark.parametrize(
    ("value", "first", "last"),
    [
        ("2026", date(2026, 1, 1), date(2026, 12, 31)),
        ("2026-02", date(2026, 2, 1), date(2026, 2, 28)),
        ("2024-02", date(2024, 2, 1), date(2024, 2, 29)),
        ("2026-12", date(2026, 12, 1), date(2026, 12, 31)),
        ("2026-12-24", date(2026, 12, 24), date(2026, 12, 24)),
    ],
)
def test_a_short_date_means_its_first_day_after_which_and_its_last_before_which(value: str, first: date, last: date):
    wanted = read_filters(filters(("after", value), ("before", value)))
    assert (wanted.after, wanted.before) == (first, last)


def test_sites_add_up_and_lose_their_www():
    wanted = read_filters(filters(("site", "www.A.org"), ("site", "b.org"), ("not", "c.org"), ("lang", "de-AT")))
    assert wanted == ReadFilters(sites=("a.org", "b.org"), not_sites=("c.org",), lang="de")


def test_the_later_of_two_beginnings_counts():
    today = date(2026, 3, 10)
    assert ReadFilters(recent="week").since(today) == date(2026, 3, 3)
    assert ReadFilters(recent="week", after=date(2026, 3, 8)).since(today) == date(2026, 3, 8)
    assert ReadFilters(recent="day", after=date(2020, 1, 1)).since(today) == date(2026, 3, 9)
    assert ReadFilters().since(today) is None


def test_what_cannot_be_honoured_is_said_in_a_sentence_each():
    wanted = filters(("after", "2026"), ("lang", "de"))
    assert unhonoured(wanted, honours={"after"}, by="gnews") == ("gnews cannot filter by 'lang de'",)


@pytest.mark.parametrize(
    ("url", "inside"),
    [
        ("https://example.org/blog", True),
        ("https://example.org/Blog/a", True),
        ("https://example.org/blogs/a", False),
        ("https://example.org/blog.html", False),
        ("https://www.example.org/blog/", True),
        ("https://example.com/blog/a", False),
    ],
)
def test_a_site_with_a_path_is_what_lies_under_it(url: str, inside: bool):
    assert on_wanted_host(url, ReadFilters(sites=("example.org/blog",))) == inside
