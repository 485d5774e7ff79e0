"""OpenAlex, PubMed, Semantic Scholar and GitHub as the tests know them: at a server of ours, with their fixtures."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest

from agent.errors import SourceError
from agent.sources.base import SearchRequest, SearchResult, ask
from agent.sources.http import make_client
from agent.sources.live.github import GitHubSource
from agent.sources.live.openalex import OpenAlexSource
from agent.sources.live.pubmed import PubMedSource
from agent.sources.live.semanticscholar import SemanticScholarSource
from agent.sources.live.standalone import StandaloneSource
from tests.agent.sources.live.apiserver import ApiRequest, ApiServer, Reply, Route, json_reply, run
from tests.agent.sources.live.backend_cases import FIXTURES, filters, now, recorded

KINDS: Final[Mapping[str, type[StandaloneSource]]] = {
    kind.name: kind for kind in (OpenAlexSource, PubMedSource, SemanticScholarSource, GitHubSource)
}
NAMES: Final = sorted(KINDS)
ARTICLES: Final = Reply((FIXTURES / "pubmed" / "efetch.xml").read_bytes(), headers={"content-type": "text/xml"})
NOTHING: Final[Mapping[str, object]] = {
    "openalex": {"meta": {"count": 0}, "results": []},
    "pubmed": {"esearchresult": {"count": "0", "idlist": []}},
    "semanticscholar": {"total": 0, "offset": 0},
    "github": {"total_count": 0, "items": []},
}
NO_FILTERS: Final[Mapping[str, str]] = MappingProxyType({})


def found(name: str) -> Route:
    """The API with its recorded answers."""

    def route(request: ApiRequest) -> Reply:
        if request.path.endswith("/efetch.fcgi"):
            return ARTICLES
        file = {"openalex": "works", "pubmed": "esearch", "semanticscholar": "search"}.get(name)
        return json_reply(recorded(f"{name}/{file or request.path.rpartition('/')[2]}.json"))

    return route


def searched(
    name: str,
    route: Route,
    query: str = "aurora falls",
    *,
    where: Mapping[str, str] = NO_FILTERS,
    limit: int = 5,
    key: str = "",
    seconds: float = 5.0,
    seen: list[ApiRequest] | None = None,
) -> SearchResult:
    """Ask a source at a server once, in the way that the agent does."""

    async def test(server: ApiServer) -> SearchResult:
        server.routes["*"] = route
        async with make_client() as client:
            source = KINDS[name](client, base=server.base, key=key, now=now)
            request = SearchRequest(query, limit=limit, filters=tuple(filters(where)))
            try:
                return await ask(source, request, seconds=seconds)
            finally:
                if seen is not None:
                    seen.extend(server.requests)

    return run(test)


def requests(name: str, query: str = "aurora falls", **more: Any) -> list[ApiRequest]:
    seen: list[ApiRequest] = []
    searched(name, found(name), query, seen=seen, **more)
    return seen


def failure(name: str, route: Route, **more: Any) -> SourceError:
    with pytest.raises(SourceError) as caught:
        searched(name, route, **more)
    return caught.value
