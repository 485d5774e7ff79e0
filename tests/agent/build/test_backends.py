import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.build.backends import backends_of, live_sources
from agent.build.sources import build_sources, distinct, uses_world
from agent.errors import SetupError
from agent.loop.execute import execute
from agent.plan import Node, Plan
from agent.settings import CairnSettings
from agent.sources.base import SearchRequest, SearchResult, Source, close_sources, keep_seconds_of
from agent.sources.http import make_client
from agent.sources.pages.errors import PageError
from agent.sources.select import selected
from agent.trace import Searched, SearchFailed
from tests.agent.sources.live.apiserver import ApiServer, Reply, json_reply, run

FIXTURES = Path(__file__).parents[2] / "fixtures" / "api"
Step = Searched | SearchFailed


def recorded(name: str) -> Reply:
    return json_reply(json.loads((FIXTURES / name).read_bytes()))


def settings(base: str, tmp_path: Path, **given: Any) -> CairnSettings:
    """Every address is the local server's."""
    names = ("tavily", "serper", "brave", "exa", "gnews", "arxiv", "wiki", "wikidata", "sparql")
    names += ("openalex", "pubmed", "semanticscholar", "github")
    addresses: dict[str, Any] = {f"{name}_url": base for name in names}
    return CairnSettings.model_validate(addresses | {"cache": str(tmp_path / "cache")} | given)


async def searched(sources: Mapping[str, Source], *nodes: tuple[str, str], question: str = "") -> list[Step]:
    plan = Plan(nodes=tuple(Node(id=str(n), source=name, query=query) for n, (name, query) in enumerate(nodes)))
    steps: list[Step] = []
    await execute(plan, sources, round=1, limit=5, seconds=5, emit=steps.append, question=question)
    return steps


def test_a_backend_that_fails_is_replaced_by_the_next_and_named_in_the_trace(tmp_path: Path):
    async def test(server: ApiServer) -> None:
        server.routes |= {
            "/search": json_reply({"detail": {"error": "Unauthorized"}}, 401),
            "/res/v1/web/search": recorded("brave/web.json"),
        }
        made = settings(server.base, tmp_path, tavily_key="tvly-wrong", brave_key="b", sources="web")
        sources = build_sources(made)
        try:
            (step,) = await searched(sources, ("web", "dune"))
            assert isinstance(step, Searched)
            assert step.backend == "brave"
            assert [(failure.backend, failure.kind) for failure in step.failures] == [("tavily", "auth")]
            assert (step.credits, step.usd) == (1, 0.005)
            assert "tvly-wrong" not in step.model_dump_json()
            (again,) = await searched(sources, ("web", "dune"))
            assert isinstance(again, Searched)
            assert (again.cached, again.credits, again.passages) == ("fresh", 0, step.passages)
        finally:
            await close_sources(sources.values())

    run(test)


def test_the_cache_outlives_the_process_that_filled_it(tmp_path: Path):
    async def test(server: ApiServer) -> None:
        server.routes["/res/v1/web/search"] = recorded("brave/web.json")
        made = settings(server.base, tmp_path, brave_key="b", sources="web")
        for cached in ("", "fresh"):
            sources = build_sources(made)
            (step,) = await searched(sources, ("web", "dune"))
            await close_sources(sources.values())
            assert isinstance(step, Searched)
            assert step.cached == cached
        assert len(server.requests) == 1

    run(test)


def test_with_another_number_of_pages_or_of_enough_news_it_searches_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class NoPages:
        def __init__(self, **given: Any) -> None:
            pass

        async def page(self, url: str) -> None:
            raise PageError("its server answered 404", kind="status")

        async def aclose(self) -> None:
            pass

    monkeypatch.setattr("agent.sources.pages.fetch.Fetcher", NoPages)

    async def test(server: ApiServer) -> None:
        server.routes |= {"/res/v1/web/search": recorded("brave/web.json"), "/news": recorded("serper/news.json")}
        made = settings(
            server.base, tmp_path, brave_key="b", serper_key="s", web="brave", news="serper", sources="web,news"
        )
        for given, cached in (
            ({}, ("", "")),
            ({}, ("fresh", "fresh")),
            ({"news_enough": 9}, ("fresh", "")),
            ({"pages": 1}, ("", "")),
            ({"pages": 2}, ("", "")),
            ({"pages": 1}, ("fresh", "fresh")),
        ):
            sources = build_sources(made.model_copy(update=given))
            steps = await searched(sources, ("web", "dune"), ("news", "dune"))
            await close_sources(sources.values())
            assert tuple(step.cached for step in steps if isinstance(step, Searched)) == cached, given

    run(test)


def test_news_asks_the_next_backend_where_the_first_has_too_little(tmp_path: Path):
    async def test(server: ApiServer) -> None:
        server.routes |= {
            "/api/v4/search": recorded("gnews/vendor_example.json"),
            "/news": recorded("serper/news.json"),
        }
        sources = build_sources(settings(server.base, tmp_path, gnews_key="g", serper_key="s", sources="news"))
        try:
            (step,) = await searched(sources, ("news", "earthquake"))
        finally:
            await close_sources(sources.values())
        assert isinstance(step, Searched)
        assert step.backend == "gnews+serper"
        assert len(step.passages) > 1

    run(test)


def test_a_model_looks_through_what_a_named_source_finds(tmp_path: Path):
    async def test(server: ApiServer) -> None:
        server.routes |= {
            "/res/v1/web/search": recorded("brave/web.json"),
            "/v1/chat/completions": json_reply({"choices": [{"message": {"content": "2"}}]}),
        }
        model = {"filter_url": f"{server.base}/v1", "filter_model": "m", "filtered": "web"}
        sources = build_sources(settings(server.base, tmp_path, brave_key="b", sources="web", **model))
        try:
            (step,) = await searched(sources, ("web", "dune"), question="Who wrote the book behind the film?")
        finally:
            await close_sources(sources.values())
        assert isinstance(step, Searched)
        assert len(step.passages) == 1
        assert "the filter kept 1 of" in step.note
        assert "Who wrote the book behind the film?" in server.requests[-1].json["messages"][0]["content"]

    run(test)


def test_a_filter_without_a_model_is_a_sentence(tmp_path: Path):
    made = settings("http://127.0.0.1:9", tmp_path, live=True, filtered="kg")
    with pytest.raises(SetupError, match="needs a model to filter passages: set filter_url"):
        build_sources(made)
    with pytest.raises(SetupError, match="'filtered' names 'corpus', which is not a source here"):
        build_sources(made.model_copy(update={"filtered": ("corpus",)}))


def test_what_has_no_key_is_left_out_and_what_needs_none_is_there(tmp_path: Path):
    made = settings("http://127.0.0.1:9", tmp_path, live=True, searxng_url="http://127.0.0.1:9", news="gnews,searxng")
    found = backends_of(made, make_client())
    names = {name: [backend.name for backend in backends] for name, backends in found.items()}
    assert names == {
        "web": ["searxng"],
        "news": ["searxng"],
        "arxiv": ["arxiv"],
        "wiki": ["mediawiki"],
        "kg": ["wikidata"],
    }


def test_a_search_without_a_key_is_the_last_and_begins_nothing_by_itself(tmp_path: Path):
    order: dict[str, Any] = {"web": ("searxng", "ddgs"), "news": ("ddgs",)}
    assert not CairnSettings(**order).is_live
    made = settings("http://127.0.0.1:9", tmp_path, live=True, **order)
    assert [backend.name for backend in backends_of(made, make_client())["web"]] == ["ddgs"]
    also = made.model_copy(update={"searxng_url": "http://127.0.0.1:9"})
    assert [backend.name for backend in backends_of(also, make_client())["web"]] == ["searxng", "ddgs"]


def test_papers_and_code_are_searched_where_sources_name_them_and_all_searches_these(tmp_path: Path):
    async def test(server: ApiServer) -> None:
        server.routes |= {
            "/works": recorded("openalex/works.json"),
            "/graph/v1/paper/search": recorded("semanticscholar/search.json"),
        }
        made = settings(server.base, tmp_path, sources="openalex,semanticscholar", openalex_key="k" * 20)
        assert made.is_live
        sources = build_sources(made)
        try:
            assert list(sources) == ["openalex", "semanticscholar", "all"]
            steps = await searched(sources, ("openalex", "dune"), ("all", "dune"))
        finally:
            await close_sources(sources.values())
        one, both = steps
        assert isinstance(one, Searched)
        assert isinstance(both, Searched)
        assert (one.backend, {passage.source for passage in one.passages}) == ("openalex", {"openalex"})
        assert {passage.source for passage in both.passages} == {"openalex", "semanticscholar"}
        assert any("api_key=" in request.target for request in server.requests)

    run(test)


def test_papers_and_code_are_not_searched_where_no_setting_names_them(tmp_path: Path):
    sources = build_sources(settings("http://127.0.0.1:9", tmp_path, live=True, openalex_key="k" * 20))
    assert set(sources) == {"arxiv", "wiki", "kg", "all", "documents"}
    assert not settings("http://127.0.0.1:9", tmp_path, openalex_key="k" * 20).is_live


def test_the_settings_limits_and_prices_reach_the_backend(tmp_path: Path):
    made = settings(
        "http://127.0.0.1:9", tmp_path, tavily_key="t", prices={"tavily": 0.5}, limits={"tavily": {"tries": 1}}
    )

    async def test(server: ApiServer) -> None:
        server.routes["/search"] = Reply(status=500)
        sources = live_sources(made.model_copy(update={"tavily_url": server.base}))
        (step,) = await searched(sources, ("web", "x"))
        assert isinstance(step, SearchFailed)
        assert len(step.failures) == len(server.requests) == 1
        server.routes["/search"] = recorded("tavily/basic_search.json")
        (step,) = await searched(sources, ("web", "x"))
        await close_sources(sources.values())
        assert isinstance(step, Searched)
        assert step.usd == 0.5 * step.credits > 0

    run(test)


def test_each_source_says_how_long_its_answers_hold_and_several_as_long_as_the_shortest(tmp_path: Path):
    async def test() -> None:
        limits = {"brave": {"keep_seconds": 3_600}}
        model = {"filtered": "web", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
        keys = {"brave_key": "b", "gnews_key": "g"}
        made = settings("http://127.0.0.1:9", tmp_path, sources="web,news,arxiv,wiki", limits=limits, **keys, **model)
        sources = build_sources(made.model_copy(update={"news": ("gnews",)}))
        held = {name: keep_seconds_of(source) for name, source in sources.items()}
        await close_sources(sources.values())
        day = 24 * 3_600
        assert held == {"web": 3_600, "news": 900, "arxiv": 7 * day, "wiki": day, "all": 900}
        assert keep_seconds_of(selected(sources, only=("arxiv",))["arxiv"]) == 7 * day

    asyncio.run(test())


def test_a_source_without_a_key_is_a_sentence_that_names_the_keys(tmp_path: Path):
    with pytest.raises(SetupError, match="no source 'web'; it needs CAIRN_TAVILY_KEY"):
        build_sources(settings("http://127.0.0.1:9", tmp_path, live=True, sources="web,arxiv"))


def test_a_cache_at_an_impossible_place_is_a_sentence(tmp_path: Path):
    with pytest.raises(SetupError, match=r"the setting 'cache' cannot be used: .*redis://"):
        build_sources(settings("http://127.0.0.1:9", tmp_path, live=True, cache="ftp://host/cache"))


def test_a_corpus_beside_live_sources_answers_only_for_itself(tmp_path: Path):
    (tmp_path / "d.jsonl").write_text('{"id": "d", "title": "Dune", "text": "Frank Herbert wrote Dune."}\n', "utf-8")
    made = settings("http://127.0.0.1:9", tmp_path, live=True, corpus=tmp_path / "d.jsonl")
    sources = build_sources(made)
    assert set(sources) == {"corpus", "arxiv", "wiki", "kg", "all", "documents"}
    assert sources["corpus"] is not sources["wiki"]
    assert not uses_world(made)


def test_the_little_world_answers_only_where_nothing_else_is_configured(tmp_path: Path):
    assert uses_world(CairnSettings())
    assert not uses_world(CairnSettings(live=True))
    assert not uses_world(CairnSettings(kg=tmp_path / "graph.db"))
    assert uses_world(CairnSettings(live=False, tavily_key="t"))  # pyright: ignore[reportArgumentType]


def test_names_of_one_source_are_reported_once():
    class Empty:
        async def search(self, request: SearchRequest) -> SearchResult:
            return SearchResult()

    one, other = Empty(), Empty()
    assert distinct({"corpus": one, "web": one, "kg": other, "all": one}) == ("corpus", "kg")


def test_closing_the_sources_closes_what_they_share_without_complaint(tmp_path: Path):
    async def test() -> None:
        sources = build_sources(settings("http://127.0.0.1:9", tmp_path, live=True, pages=2, tavily_key="t"))
        await close_sources(sources.values())
        await close_sources(sources.values())
        (step,) = await searched({"web": sources["web"]}, ("web", "x"))
        assert isinstance(step, SearchFailed)

    asyncio.run(test())


def test_what_one_server_said_is_no_answer_of_another(tmp_path: Path):
    def wiki(text: str) -> Reply:
        page = {"title": "X", "pageid": 1, "index": 1, "extract": text}
        return json_reply({"query": {"search": [{"title": "X", "pageid": 1, "snippet": text}], "pages": [page]}})

    async def test(server: ApiServer) -> None:
        said = {"/w/api.php": "The public wiki.", "/ours/w/api.php": "Our own wiki."}
        server.routes |= {path: wiki(text) for path, text in said.items()}
        for base, text in ((server.base, "The public wiki."), (f"{server.base}/ours", "Our own wiki.")):
            sources = live_sources(settings(server.base, tmp_path, wiki_url=base))
            (step,) = await searched(sources, ("wiki", "holidays"))
            assert isinstance(step, Searched)
            assert [passage.text for passage in step.passages] == [text]
            await close_sources(sources.values())

    run(test)
