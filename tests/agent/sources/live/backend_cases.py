"""The backends for web and news as the tests know them, at a server of ours, with their fixtures."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import httpx2

from agent.plan import Filter
from agent.sources.base import SearchRequest, SearchResult, Source, ask
from agent.sources.http import make_client
from agent.sources.live.brave import BraveSource
from agent.sources.live.exa import ExaSource
from agent.sources.live.gnews import GNewsSource
from agent.sources.live.searxng import SearxngSource
from agent.sources.live.serper import SerperSource
from agent.sources.live.tavily import TavilySource
from tests.agent.sources.live.apiserver import ApiRequest, ApiServer, Reply, json_reply, run

FIXTURES: Final = Path(__file__).parents[3] / "fixtures" / "api"
KEY: Final = "tvly-VerySecret0123456789"
NOW: Final = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
Make = Callable[[httpx2.AsyncClient, str], Source]


def now() -> datetime:
    return NOW


@dataclass(frozen=True)
class BackendCase:
    """One backend: how it is made, where it asks, and how its API says that it found nothing."""

    make: Make
    path: str
    empty: object
    fixture: str
    errors: Sequence[tuple[Reply, str, float | None]] = field(default_factory=tuple)
    """What the API answers, the kind of error that it is, and the seconds to wait."""


def tavily(client: httpx2.AsyncClient, base: str, **more: Any) -> TavilySource:
    return TavilySource(client, key=KEY, base=base, now=now, **more)


def serper(client: httpx2.AsyncClient, base: str, **more: Any) -> SerperSource:
    return SerperSource(client, key=KEY, base=base, now=now, **more)


def searxng(client: httpx2.AsyncClient, base: str, **more: Any) -> SearxngSource:
    """It has no key, but may be behind a password."""
    return SearxngSource(client, base=base.replace("://", f"://me:{KEY}@"), now=now, **more)


def brave(client: httpx2.AsyncClient, base: str, **more: Any) -> BraveSource:
    return BraveSource(client, key=KEY, base=base, now=now, **more)


def exa(client: httpx2.AsyncClient, base: str, **more: Any) -> ExaSource:
    return ExaSource(client, key=KEY, base=base, now=now, **more)


def gnews(client: httpx2.AsyncClient, base: str, **more: Any) -> GNewsSource:
    return GNewsSource(client, key=KEY, base=base, now=now, **more)


def _says(text: str) -> dict[str, object]:
    return {"detail": {"error": text}}


UNTIL_MIDNIGHT: Final = 21 * 3600.0
BACKEND_CASES: Final = {
    "tavily": BackendCase(
        tavily,
        "/search",
        {"query": "q", "results": [], "response_time": 0.5},
        "tavily/basic_search.json",
        [
            (json_reply(_says("Unauthorized: missing or invalid API key."), 401), "auth", None),
            (json_reply({"detail": "Forbidden"}, 403), "auth", None),
            (json_reply(_says("This request exceeds your plan's set usage limit."), 432), "quota", None),
            (json_reply({"detail": "pay as you go limit"}, 433), "quota", None),
            (json_reply(_says("Too many requests"), 429, retry_after="7"), "rate", 7.0),
            (json_reply(_says("Query is too long. Max query length is 400 characters."), 400), "bad_query", None),
            (json_reply({}, 201), "upstream", None),
        ],
    ),
    "serper": BackendCase(
        serper,
        "/search",
        {"searchParameters": {}, "organic": [], "credits": 1},
        "serper/search.json",
        [
            (json_reply({"message": "Unauthorized.", "statusCode": 403}, 403), "auth", None),
            (json_reply({"message": "Not enough credits", "statusCode": 400}, 400), "quota", None),
            (json_reply({"message": "Not enough credits", "statusCode": 429}, 429), "quota", None),
            (json_reply({"message": "Rate limit exceeded."}, 429, retry_after="2"), "rate", 2.0),
            (json_reply({"message": "Missing query parameter", "statusCode": 400}, 400), "bad_query", None),
        ],
    ),
    "searxng": BackendCase(
        searxng,
        "/search",
        {"query": "q", "results": [], "answers": [], "infoboxes": [], "unresponsive_engines": []},
        "searxng/general.json",
        [
            (Reply(b"<h1>Forbidden</h1>", 403), "auth", None),
            (json_reply({}, 402), "quota", None),
            (Reply(b"Too Many Requests", 429, {"retry-after": "60"}), "rate", 60.0),
            (json_reply({"error": "No query"}, 400), "bad_query", None),
            (json_reply({"results": [], "unresponsive_engines": [["bing", "timeout"]]}), "upstream", None),
        ],
    ),
    "brave": BackendCase(
        brave,
        "/res/v1/web/search",
        {"type": "search", "query": {"original": "q"}},
        "brave/web.json",
        [
            (json_reply({"error": {"code": "SUBSCRIPTION_TOKEN_INVALID", "status": 422}}, 422), "auth", None),
            (json_reply({"error": {"code": "VALIDATION", "detail": "bad count"}}, 422), "bad_query", None),
            (json_reply({"error": {"code": "SUBSCRIPTION_NOT_FOUND"}}, 403), "auth", None),
            (
                json_reply({}, 429, x_ratelimit_remaining="0, 900", x_ratelimit_reset="1, 1419704"),
                "rate",
                1.0,
            ),
            (json_reply({}, 429, retry_after="4", x_ratelimit_reset="1, 1419704"), "rate", 4.0),
            (
                json_reply({}, 429, x_ratelimit_remaining="1, 0", x_ratelimit_reset="1, 1419704"),
                "quota",
                1419704.0,
            ),
            (
                json_reply(
                    {"error": {"code": "RATE_LIMITED"}},
                    429,
                    x_ratelimit_limit="50, 0",
                    x_ratelimit_remaining="0, 0",
                    x_ratelimit_reset="1, 2466201",
                ),
                "rate",
                1.0,
            ),
            (json_reply({"error": {"code": "QUOTA_LIMITED"}}, 429), "quota", None),
        ],
    ),
    "exa": BackendCase(
        exa,
        "/search",
        {"requestId": "1", "results": []},
        "exa/search.json",
        [
            (json_reply({"requestId": "1", "error": "Invalid API key", "tag": "INVALID_API_KEY"}, 401), "auth", None),
            (json_reply({"error": "no such feature", "tag": "ACCESS_DENIED"}, 403), "auth", None),
            (json_reply({"error": "out of credits", "tag": "NO_MORE_CREDITS"}, 402), "quota", None),
            (json_reply({"error": "slow down"}, 429, retry_after="1"), "rate", 1.0),
            (json_reply({"error": "numResults", "tag": "INVALID_NUM_RESULTS"}, 400), "bad_query", None),
        ],
    ),
    "gnews": BackendCase(
        gnews,
        "/api/v4/search",
        {"totalArticles": 0, "articles": []},
        "gnews/vendor_example.json",
        [
            (json_reply({"errors": ["Your API key is invalid."]}, 401), "auth", None),
            (json_reply({"errors": ["You have reached your request limit for today."]}, 403), "quota", UNTIL_MIDNIGHT),
            (json_reply({"errors": ["Too many requests."]}, 429, retry_after="1"), "rate", 1.0),
            (json_reply({"errors": {"q": "The query has a syntax error near '?'"}}, 400), "bad_query", None),
            (json_reply({"errors": ["maintenance"]}, 503), "upstream", None),
        ],
    ),
}
NAMES: Final = sorted(BACKEND_CASES)


def filters(where: Mapping[str, str]) -> list[Filter]:
    """Filters by their names; several values of one name are separated by spaces."""
    return [Filter(name=name, value=value) for name, values in where.items() for value in values.split()]


async def search(
    server: ApiServer,
    make: Make,
    query: str = "aurora falls",
    *,
    limit: int = 5,
    conditions: Sequence[Filter] = (),
    seconds: float = 5.0,
) -> SearchResult:
    """Ask a backend at the server once, in the way that the agent does."""
    async with make_client() as client:
        return await ask(
            make(client, server.base), SearchRequest(query, limit=limit, filters=tuple(conditions)), seconds=seconds
        )


def answered(
    make: Make,
    answer: object,
    query: str = "aurora falls",
    *,
    limit: int = 5,
    where: Mapping[str, str] = MappingProxyType({}),
) -> tuple[SearchResult, ApiRequest]:
    """What a backend finds in an answer, and the request for it."""

    async def test(server: ApiServer) -> tuple[SearchResult, ApiRequest]:
        server.routes["*"] = answer if isinstance(answer, Reply) else json_reply(answer)
        hits = await search(server, make, query, limit=limit, conditions=filters(where))
        return hits, server.requests[0]

    return run(test)


def recorded(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text(encoding="utf-8"))
