"""What the backends ask: the query within the API's bounds, each filter in the API's own way, and what it costs."""

from base64 import b64encode
from functools import partial
from typing import Any

import pytest

from agent.settings.live import NEWS_BACKENDS, WEB_BACKENDS
from agent.sources.base import Paid, SearchRequest, credits_of
from agent.sources.http import make_client
from agent.sources.limits import Limits
from agent.sources.live.gnews import query_text
from agent.sources.live.tavily import TavilySource
from tests.agent.sources.live.apiserver import ApiServer, json_reply, run
from tests.agent.sources.live.backend_cases import (
    BACKEND_CASES,
    KEY,
    NAMES,
    Make,
    answered,
    brave,
    exa,
    filters,
    gnews,
    now,
    recorded,
    search,
    searxng,
    serper,
    tavily,
)

EMPTY = {name: backend.empty for name, backend in BACKEND_CASES.items()}
NO_NEWS: object = {"results": list[object]()}
"""Of Brave: there the two endpoints answer in two shapes."""


def of(make: Any, **more: Any) -> Make:
    return partial(make, **more)


def news(make: Any) -> Make:
    return partial(make, topic="news")


def test_tavily_is_searched_with_its_key_in_a_header_and_the_filters_as_parameters():
    _, request = answered(tavily, EMPTY["tavily"], limit=7, where={"after": "2026-01", "before": "2026-03-05", "site": "https://www.a.org/ b.org", "not": "c.org", "lang": "de"})  # fmt: skip
    assert (request.method, request.path, request.headers["authorization"]) == ("POST", "/search", f"Bearer {KEY}")
    assert "x-tavily-access-mode" not in request.headers
    assert request.json == {
        "query": "aurora falls",
        "search_depth": "basic",
        "topic": "general",
        "max_results": 7,
        "include_usage": True,
        "start_date": "2026-01-01",
        "end_date": "2026-03-05",
        "include_domains": ["a.org", "b.org"],
        "exclude_domains": ["c.org"],
        "language": "de",
        "filter_by_language": True,
    }


@pytest.mark.parametrize(
    ("conditions", "sent"),
    [
        ({"recent": "week"}, {"time_range": "week"}),
        ({"recent": "week", "before": "2026-11-19"}, {"start_date": "2026-11-14", "end_date": "2026-11-19"}),
        ({"recent": "year", "after": "2026-06-01"}, {"start_date": "2026-06-01"}),
        ({"kind": "news"}, {"topic": "news"}),
        ({"kind": "finance"}, {"topic": "finance"}),
        ({"kind": "general"}, {"topic": "general"}),
    ],
)
def test_tavily_knows_periods_and_kinds(conditions: dict[str, str], sent: dict[str, object]):
    hits, request = answered(tavily, EMPTY["tavily"], where=conditions)
    assert request.json | sent == request.json
    assert len(request.json) == 5 + len(set(sent) - {"topic"})
    assert hits.notes == ()


def test_tavily_counts_what_it_says_it_used_and_else_what_the_depth_costs():
    advanced = of(tavily, depth="advanced", usd_per_credit=0.01)
    hits, request = answered(advanced, EMPTY["tavily"])
    assert (request.json["search_depth"], hits.credits, hits.usd) == ("advanced", 2.0, 0.02)
    hits, _ = answered(advanced, {"results": [], "usage": {"credits": 1}})
    assert (hits.credits, hits.usd) == (1.0, 0.01)


def test_tavilys_library_keeps_its_key_out_of_the_shared_client():
    async def test(server: ApiServer) -> None:
        server.routes["*"] = json_reply(EMPTY["tavily"])
        async with make_client() as client:
            before = dict(client.headers)
            source = TavilySource(client, key=KEY, base=server.base + "/behind/a/path/", now=now)
            await source.search(SearchRequest("one", limit=1))
            await source.search(SearchRequest("two", limit=1))
            assert dict(client.headers) == before
            await client.get(server.base + "/other")
        assert [request.path for request in server.requests] == ["/behind/a/path/search"] * 2 + ["/other"]
        assert KEY not in str(server.requests[-1].headers)

    run(test)


def test_serper_is_searched_in_googles_own_terms():
    hits, request = answered(serper, EMPTY["serper"], limit=7, where={"after": "2026-01", "before": "2026-03-05", "site": "a.org b.org", "not": "c.org", "lang": "de"})  # fmt: skip
    assert (request.method, request.path, request.headers["x-api-key"]) == ("POST", "/search", KEY)
    assert request.json == {
        "q": "aurora falls (site:a.org OR site:b.org) -site:c.org",
        "num": 7,
        "hl": "de",
        "tbs": "cdr:1,cd_min:1/1/2026,cd_max:3/5/2026",
    }
    assert (hits.notes, hits.credits, hits.usd) == ((), 1.0, 0.001)


@pytest.mark.parametrize(
    ("make", "conditions", "path", "tbs", "notes"),
    [
        (serper, {"recent": "day"}, "/search", "qdr:d", ()),
        (serper, {"recent": "month", "after": "2020"}, "/search", "cdr:1,cd_min:10/22/2026", ()),
        (serper, {"before": "2020"}, "/search", "cdr:1,cd_max:12/31/2020", ()),
        (serper, {"kind": "news"}, "/news", None, ()),
        (serper, {"kind": "science", "recent": "year"}, "/scholar", None, ("serper cannot filter by 'recent year'",)),
        (serper, {"kind": "finance"}, "/search", None, ("serper cannot filter by 'kind finance'",)),
        (news(serper), {"recent": "week"}, "/news", "qdr:w", ()),
        (news(serper), {"kind": "science"}, "/news", None, ("serper cannot filter by 'kind science'",)),
    ],
)
def test_serper_has_an_endpoint_a_kind(
    make: Make, conditions: dict[str, str], path: str, tbs: str | None, notes: tuple[str, ...]
):
    hits, request = answered(make, EMPTY["serper"], where=conditions)
    assert (request.path, request.json.get("tbs"), hits.notes) == (path, tbs, notes)


def test_serper_asks_for_more_than_ten_only_where_two_credits_may_be_spent():
    _, request = answered(serper, EMPTY["serper"], limit=50)
    assert request.json["num"] == 10
    hits, request = answered(of(serper, max_results=100, usd_per_credit=0.002), {"organic": []}, limit=50)
    assert (request.json["num"], hits.credits, hits.usd) == (50, 2.0, 0.004)
    hits, _ = answered(of(serper, max_results=100), {"organic": []}, limit=3)
    assert hits.credits == 1.0
    hits, _ = answered(serper, {"organic": [], "credits": 3})
    assert hits.credits == 3.0


def test_searxng_is_searched_for_json_of_a_category():
    hits, request = answered(
        searxng,
        EMPTY["searxng"],
        where={"site": "a.org", "not": "c.org", "recent": "month", "lang": "de", "after": "2026"},
    )
    assert (request.method, request.path) == ("GET", "/search")
    assert request.params == {
        "q": "aurora falls site:a.org -site:c.org",
        "format": "json",
        "categories": "general",
        "language": "de",
        "time_range": "month",
    }
    assert (hits.notes, hits.credits, hits.usd) == (("searxng cannot filter by 'after 2026'",), 0.0, 0.0)


@pytest.mark.parametrize(
    ("make", "kind", "category", "notes"),
    [
        (searxng, "science", "science", ()),
        (searxng, "news", "news", ()),
        (searxng, "finance", "general", ("searxng cannot filter by 'kind finance'",)),
        (news(searxng), "news", "news", ()),
        (news(searxng), "science", "news", ("searxng cannot filter by 'kind science'",)),
    ],
)
def test_searxng_has_a_category_a_kind(make: Make, kind: str, category: str, notes: tuple[str, ...]):
    hits, request = answered(make, EMPTY["searxng"], where={"kind": kind})
    assert (request.params["categories"], hits.notes) == (category, notes)


def test_a_password_in_searxngs_url_travels_in_a_header_only():
    _, request = answered(searxng, EMPTY["searxng"])
    assert request.headers["authorization"] == "Basic " + b64encode(f"me:{KEY}".encode()).decode()
    assert "@" not in request.target + request.headers["host"]


def test_brave_is_searched_without_markup():
    hits, request = answered(brave, EMPTY["brave"], limit=99, where={"after": "2026-01", "before": "2026-03-05", "site": "a.org", "not": "c.org", "lang": "ja"})  # fmt: skip
    assert (request.method, request.path, request.headers["x-subscription-token"]) == ("GET", "/res/v1/web/search", KEY)
    assert request.headers["accept"] == "application/json"
    assert request.params == {
        "q": "aurora falls site:a.org NOT site:c.org",
        "count": "20",
        "search_lang": "jp",
        "freshness": "2026-01-01to2026-03-05",
        "text_decorations": "false",
        "result_filter": "web",
    }
    assert (hits.notes, hits.credits, hits.usd) == ((), 1.0, 0.005)


@pytest.mark.parametrize(
    ("make", "conditions", "path", "sent", "notes"),
    [
        (brave, {"recent": "week"}, "web", {"freshness": "pw"}, ()),
        (brave, {"after": "2026-11"}, "web", {"freshness": "2026-11-01to2026-11-21"}, ()),
        (brave, {"before": "2020"}, "web", {"freshness": "1990-01-01to2020-12-31"}, ()),
        (brave, {"recent": "day", "after": "2020"}, "web", {"freshness": "2026-11-20to2026-11-21"}, ()),
        (brave, {"lang": "eo"}, "web", {}, ("brave cannot filter by 'lang eo'",)),
        (brave, {"lang": "zh"}, "web", {"search_lang": "zh-hans"}, ()),
        (brave, {"kind": "science"}, "web", {}, ("brave cannot filter by 'kind science'",)),
        (brave, {"kind": "news"}, "news", {}, ()),
        (news(brave), {"kind": "news", "recent": "year"}, "news", {"freshness": "py"}, ()),
        (news(brave), {"kind": "finance"}, "news", {}, ("brave cannot filter by 'kind finance'",)),
    ],
)
def test_brave_maps_periods_languages_and_kinds(
    make: Make, conditions: dict[str, str], path: str, sent: dict[str, str], notes: tuple[str, ...]
):
    hits, request = answered(make, NO_NEWS, where=conditions)
    always = {"q", "count", "text_decorations", "result_filter"}
    assert request.path == f"/res/v1/{path}/search"
    assert {name: value for name, value in request.params.items() if name not in always} == sent
    assert hits.notes == notes


def test_braves_news_may_be_fifty():
    _, request = answered(news(brave), NO_NEWS, limit=99)
    assert request.params == {"q": "aurora falls", "count": "50"}


def test_exa_is_searched_for_highlights_with_the_filters_as_parameters():
    hits, request = answered(exa, EMPTY["exa"], limit=50, where={"after": "2026-01", "before": "2026-03-05", "site": "a.org", "not": "c.org", "lang": "de"})  # fmt: skip
    assert (request.method, request.path, request.headers["x-api-key"]) == ("POST", "/search", KEY)
    assert request.json == {
        "query": "aurora falls",
        "type": "auto",
        "numResults": 10,
        "contents": {"highlights": True},
        "startPublishedDate": "2026-01-01T00:00:00.000Z",
        "endPublishedDate": "2026-03-05T23:59:59.999Z",
        "includeDomains": ["a.org"],
        "excludeDomains": ["c.org"],
    }
    assert (hits.notes, hits.credits, hits.usd) == (("exa cannot filter by 'lang de'",), 1.0, 0.007)


@pytest.mark.parametrize(
    ("make", "kind", "category", "notes"),
    [
        (exa, "science", "research paper", ()),
        (exa, "general", None, ()),
        (news(exa), "news", "news", ()),
        (news(exa), "science", "news", ("exa cannot filter by 'kind science'",)),
    ],
)
def test_exa_has_a_category_a_kind(make: Make, kind: str, category: str | None, notes: tuple[str, ...]):
    hits, request = answered(make, EMPTY["exa"], where={"kind": kind})
    assert (request.json.get("category"), hits.notes) == (category, notes)


def test_exa_counts_the_price_that_it_states_and_else_the_usual_one():
    stated = {"results": list[object](), "costDollars": {"total": 0.004}}
    assert answered(exa, stated)[0].usd == 0.004
    assert answered(of(exa, usd_per_credit=0.001), EMPTY["exa"])[0].usd == 0.001


def test_gnews_is_searched_with_its_key_in_a_header():
    hits, request = answered(gnews, EMPTY["gnews"], limit=500, where={"after": "2026-01", "before": "2026-03", "lang": "de", "not": "c.org", "site": "a.org"})  # fmt: skip
    assert (request.method, request.path, request.headers["x-api-key"]) == ("GET", "/api/v4/search", KEY)
    assert request.params == {
        "q": "aurora falls",
        "in": "title,description,content",
        "lang": "de",
        "max": "100",
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-03-31T23:59:59Z",
        "sortby": "relevance",
    }
    assert (hits.notes, hits.credits) == (("gnews cannot filter by 'site a.org'",), 1.0)


def test_gnews_knows_recency_as_a_first_day_and_leaves_hosts_out_by_itself():
    hits, request = answered(
        gnews, recorded("gnews/variants.json"), where={"recent": "week", "not": "example.org", "kind": "news"}
    )
    assert request.params["from"] == "2026-11-14T00:00:00Z"
    assert [hit.url for hit in hits.passages] == ["https://news.example.com/2"]
    assert hits.notes == ()
    hits, _ = answered(gnews, EMPTY["gnews"], where={"kind": "finance"})
    assert hits.notes == ("gnews cannot filter by 'kind finance'",)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("aurora falls", "aurora falls"),
        ("When was Aurora Falls released?", "Aurora Falls released"),
        ('who said "to be or not"', '"to be or not" said'),
        ("AT&T and C++", '"AT&T" "C++"'),
        ("covid-19 2026", '"covid-19" 2026'),
        ("apple AND (microsoft OR google)", "apple AND microsoft OR google"),
        ("AND apple OR", "apple"),
        ("apple NOT", "apple"),
        ("apple NOT pie", "apple NOT pie"),
        ("apple AND OR pear", "apple AND pear"),
        ('"unbalanced', "unbalanced"),
        ("The Who", "The Who"),
        ("???", ""),
    ],
)
def test_gnews_queries_hold_plain_words_quoted_phrases_and_operators_between_them(query: str, text: str):
    assert query_text(query) == text


LONG = " ".join(f"w{n:03}" for n in range(150))


@pytest.mark.parametrize(
    ("make", "chars", "words"),
    [
        (tavily, 400, 999),
        (serper, 2048, 999),
        (searxng, 500, 999),
        (brave, 400, 50),
        (exa, 1000, 999),
        (gnews, 200, 999),
    ],
)
def test_a_long_query_is_cut_between_words_and_its_operators_stay_whole(make: Make, chars: int, words: int):
    for conditions in (dict[str, str](), {"site": "a.org", "not": "b.org"}):
        name = getattr(make, "__name__", "")
        _, request = answered(make, EMPTY[name], LONG * 3, where=conditions)
        sent: str = request.params.get("q") or request.json.get("q") or request.json["query"]
        assert len(sent) <= chars
        assert len(sent.split()) <= words
        assert set(sent.split()[:8]) <= set(LONG.split())
        if conditions and name in {"serper", "searxng", "brave"}:
            assert "site:a.org" in sent
            assert sent.endswith("site:b.org")


@pytest.mark.parametrize("name", NAMES)
def test_a_source_says_what_a_search_may_cost_and_how_many_requests_it_takes(name: str):
    async def test(server: ApiServer) -> None:
        server.routes["*"] = json_reply(recorded(BACKEND_CASES[name].fixture))
        async with make_client() as client:
            source = BACKEND_CASES[name].make(client, server.base)
            assert isinstance(source, Paid)
            assert getattr(source, "name", "") == name
            assert isinstance(getattr(source, "limits", None), Limits)
            most = credits_of(source)
        hits = await search(server, BACKEND_CASES[name].make)
        assert hits.backend == name
        assert hits.credits is not None
        assert 0 <= hits.credits <= most
        assert len(hits.passages) <= 5

    run(test)


@pytest.mark.parametrize("name", [name for name in NAMES if name in WEB_BACKENDS and name in NEWS_BACKENDS])
def test_news_are_kept_less_long_than_the_web(name: str):
    async def test(_: ApiServer) -> None:
        async with make_client() as client:
            web, fresh = (
                of(BACKEND_CASES[name].make, topic=topic)(client, "http://127.0.0.1:1") for topic in ("web", "news")
            )
            assert fresh.limits.keep_seconds < web.limits.keep_seconds  # type: ignore[attr-defined]

    run(test)


def test_filters_of_the_tests_are_read_as_they_are_written():
    assert [(f.name, f.value) for f in filters({"not": "a.org b.org", "lang": "de"})] == [
        ("not", "a.org"),
        ("not", "b.org"),
        ("lang", "de"),
    ]
