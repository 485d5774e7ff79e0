"""Filters as a backend's query wants them, and a sentence for each one that it cannot honour."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from agent.outbound.urls import split_url
from agent.plan import Filter

DAYS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}


@dataclass(frozen=True)
class ReadFilters:
    """All filters of one query. Dates are whole: `after` is the first day that counts, `before` the last one."""

    after: date | None = None
    before: date | None = None
    sites: tuple[str, ...] = ()
    not_sites: tuple[str, ...] = ()
    recent: str = ""
    """day, week, month or year; empty: any time."""
    lang: str = ""
    """A code of two letters."""
    kind: str = ""
    """general, news, science or finance."""

    def since(self, today: date) -> date | None:
        """The first day that counts, of `after` and `recent` the later one."""
        recent = today - timedelta(days=DAYS[self.recent]) if self.recent else None
        return max((day for day in (self.after, recent) if day is not None), default=None)


def read_filters(filters: Iterable[Filter]) -> ReadFilters:
    """Read a node's filters; of two of the same name the last one counts, sites add up."""
    wanted: dict[str, str] = {}
    sites: dict[str, list[str]] = {"site": [], "not": []}
    for condition in filters:
        if condition.name in sites:
            sites[condition.name].append(condition.value.lower().removeprefix("www."))
        else:
            wanted[condition.name] = condition.value
    return ReadFilters(
        after=_first_day(wanted["after"]) if "after" in wanted else None,
        before=_last_day(wanted["before"]) if "before" in wanted else None,
        sites=tuple(sites["site"]),
        not_sites=tuple(sites["not"]),
        recent=wanted.get("recent", ""),
        lang=wanted.get("lang", "")[:2],
        kind=wanted.get("kind", ""),
    )


def joined(own: Iterable[Filter], wanted: Iterable[Filter]) -> tuple[Filter, ...]:
    """The filters of one query inside of those of the whole request: never wider than either, where both speak.

    Args:
        own: what the query itself says.
        wanted: what the request says. Of sites, and where there can be only one, it wins.
    """
    own, wanted = tuple(own), tuple(wanted)
    return (*(condition for condition in own if _narrows(condition, wanted)), *_unless_narrowed(own, wanted))


def _narrows(condition: Filter, wanted: Sequence[Filter]) -> bool:
    """Whether a query's own condition counts beside the request's."""
    same = [other for other in wanted if other.name == condition.name]
    match condition.name:
        case "not":
            return True
        case "after":
            return all(_first_day(condition.value) > _first_day(other.value) for other in same)
        case "before":
            return all(_last_day(condition.value) < _last_day(other.value) for other in same)
        case "recent":
            return all(DAYS[condition.value] < DAYS[other.value] for other in same)
        case "site":
            return not same or any(_within(condition.value, other.value) for other in same)
        case _:
            return not same


def _unless_narrowed(own: Sequence[Filter], wanted: Sequence[Filter]) -> Iterable[Filter]:
    """The request's conditions but those that a query's own one has made narrower."""
    narrower = {c.name for c in own if c.name != "not" and _narrows(c, wanted)}
    return (condition for condition in wanted if condition.name not in narrower)


def _within(site: str, other: str) -> bool:
    """Whether a site, a host that may have a path, is another one or a part of it."""
    (host, path), (wanted_host, wanted_path) = _host_and_path(site), _host_and_path(other)
    inside = not wanted_path or f"{path}/".startswith(f"{wanted_path}/")
    return inside and (host == wanted_host or host.endswith(f".{wanted_host}"))


def _host_and_path(site: str) -> tuple[str, str]:
    host, _, path = bare_site(site.lower()).partition("/")
    return host, path


def unhonoured(filters: Iterable[Filter], *, honours: Collection[str], by: str) -> tuple[str, ...]:
    """One sentence for each filter that the backend `by` does not know."""
    return tuple(f"{by} cannot filter by '{f.name} {f.value}'" for f in filters if f.name not in honours)


def _first_day(text: str) -> date:
    return date.fromisoformat(f"{text}-01-01"[:10])


def _last_day(text: str) -> date:
    """2026 ends on its 31 December, 2026-02 on its last day."""
    first = _first_day(text)
    if len(text) == len("2026"):
        return date(first.year, 12, 31)
    if len(text) == len("2026-02"):
        following = date(first.year + first.month // 12, first.month % 12 + 1, 1)
        return following - timedelta(days=1)
    return first


def on_wanted_host(url: str, wanted: ReadFilters) -> bool:
    """Whether a URL is on one of the sites wanted, and on none of those not wanted."""
    if wanted.sites and not any(_is_on(url, site) for site in wanted.sites):
        return False
    return not any(_is_on(url, site) for site in wanted.not_sites)


def _is_on(url: str, site: str) -> bool:
    """`example.org` holds its subdomains, `example.org/blog` only what lies under that path, `.edu` all its hosts."""
    host, path = _host_and_path(site)
    parts = split_url(url)
    there = (parts.hostname or "").removesuffix(".")
    on_path = not path or f"{parts.path.lower()}/".startswith(f"/{path}/")
    return on_path and (there == host or there.endswith(f".{host}"))


def bare_site(site: str) -> str:
    """`https://www.example.org/blog/` as example.org/blog, `*.edu` as edu."""
    return site.split("://", 1)[-1].removeprefix("www.").removeprefix("*").removeprefix(".").rstrip("/")
