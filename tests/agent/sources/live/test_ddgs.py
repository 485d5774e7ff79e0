"""The search without a key: the library itself, with its own HTTP client, against engines on 127.0.0.1."""

import asyncio
import time

import pytest
from ddgs.engines.bing_news import BingNews
from ddgs.engines.brave import Brave
from ddgs.engines.duckduckgo import Duckduckgo
from ddgs.engines.mojeek import Mojeek
from ddgs.engines.yahoo_news import YahooNews

from agent.errors import SetupError, SourceError
from agent.sources.base import SearchRequest, SearchResult, ask
from agent.sources.live import ddgs
from agent.sources.live.ddgs import DdgsSource
from agent.sources.live.reading import Topic
from tests.agent.sources.live.apiserver import ApiRequest, ApiServer, Reply, Route, run, text_reply
from tests.agent.sources.live.backend_cases import filters, now

PAGE = """<html><body><div id="links"><div class="links_main result__body">
<h2><a href="https://www.example.org/aurora">Aurora <b>Falls</b> &amp; more</a></h2>
<a class="result__snippet" href="https://www.example.org/aurora">It drops 94 metres.</a></div>
<div class="links_main result__body"><h2>An advert</h2><a href="https://duckduckgo.com/y.js?ad=1">Buy</a></div></div></body></html>"""
NEWS = """<html><body><div class="newsitem" data-title="Aurora Falls froze" url="https://news.example.com/1" data-author="N">
<div class="snippet">It froze in November.</div><span aria-label="3 days">3d</span></div></body></html>"""
ENGINES = {"duckduckgo": Duckduckgo, "brave": Brave, "mojeek": Mojeek, "bing": BingNews, "yahoo": YahooNews}
REFUSED = Reply(b"Forbidden", 403)


def searched(
    monkeypatch: pytest.MonkeyPatch,
    routes: dict[str, Route],
    *,
    topic: Topic = "web",
    seconds: float = 10.0,
    **where: str,
) -> tuple[SearchResult, list[ApiRequest]]:
    """A search whose engines are paths of a local server; what has no route refuses."""

    async def test(server: ApiServer) -> tuple[SearchResult, list[ApiRequest]]:
        server.routes |= {f"/{name}": route for name, route in routes.items()} | {"*": REFUSED}
        for name, engine in ENGINES.items():
            monkeypatch.setattr(engine, "search_url", f"{server.base}/{name}")
        source = DdgsSource(topic=topic, now=now)
        try:
            request = SearchRequest("aurora falls", limit=10, filters=tuple(filters(where)))
            return await ask(source, request, seconds=seconds), server.requests
        finally:
            await source.aclose()

    return run(test, seconds=20.0)


def test_the_pages_of_engines_become_passages(monkeypatch: pytest.MonkeyPatch):
    hits, requests = searched(monkeypatch, {"duckduckgo": text_reply(PAGE)}, recent="week", site="example.org")
    (hit,) = hits.passages
    assert (hit.title, hit.url, hit.source) == ("Aurora Falls & more", "https://www.example.org/aurora", "web")
    assert "It drops 94 metres." in hit.text
    assert (hits.backend, hits.credits, hits.usd, hits.notes) == ("ddgs", 0.0, 0.0, ())
    sent = next(request.form for request in requests if request.path == "/duckduckgo")
    assert (sent["q"], sent["df"]) == ("aurora falls site:example.org", "w")


def test_news_have_their_dates(monkeypatch: pytest.MonkeyPatch):
    hits, _ = searched(monkeypatch, {"bing": text_reply(NEWS)}, topic="news", kind="news", lang="de")
    (hit,) = hits.passages
    assert (hit.title, hit.text, hit.source) == ("Aurora Falls froze", "It froze in November.", "news")
    assert hit.date
    assert hits.notes == ("ddgs cannot filter by 'lang de'",)


def test_engines_that_all_refuse_give_an_empty_result_that_says_what_it_may_mean(monkeypatch: pytest.MonkeyPatch):
    hits, requests = searched(monkeypatch, {})
    assert hits.passages == ()
    assert hits.notes == ("ddgs found nothing: there is nothing, or the engines block this address",)
    assert requests


def test_a_page_that_is_none_gives_no_passage(monkeypatch: pytest.MonkeyPatch):
    junk = {name: text_reply("\x00<<<>&;" * 1_000) for name in ENGINES}
    assert searched(monkeypatch, {**junk})[0].passages == ()


def test_engines_that_hang_are_a_timeout_within_their_own_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ddgs, "ENGINE_SECONDS", 1)
    with pytest.raises(SourceError) as caught:
        searched(monkeypatch, {name: Reply(how="hang") for name in ENGINES})
    assert caught.value.kind == "timeout"


def test_who_asks_waits_no_longer_than_requested_and_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ddgs, "ENGINE_SECONDS", 2)
    began = time.monotonic()
    with pytest.raises(SourceError, match=r"no answer in 0\.3 s") as caught:
        searched(monkeypatch, {name: Reply(how="hang") for name in ENGINES}, seconds=0.3)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - began < 2


def test_engines_that_hang_up_are_an_upstream_failure(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(SourceError) as caught:
        searched(monkeypatch, {name: Reply(b"x" * 100, how="reset") for name in ENGINES})
    assert caught.value.kind == "upstream"


@pytest.mark.parametrize(("query", "limit"), [("", 3), ("aurora", 0)])
def test_nothing_is_requested_for_nothing(query: str, limit: int):
    hits = asyncio.run(DdgsSource().search(SearchRequest(query, limit=limit)))
    assert (hits.passages, hits.notes) == ((), ())


def test_without_the_library_the_fix_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ddgs, "find_spec", {"other": 1}.get)
    with pytest.raises(SetupError, match=r"pip install 'cairn-search\[ddgs\]'"):
        DdgsSource()
