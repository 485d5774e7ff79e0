"""However the APIs of papers and code fail, their sources end with an error of the right kind."""

import asyncio
import tracemalloc
from collections.abc import Mapping
from typing import Final

import pytest

from agent.errors import SourceError
from agent.sources.base import SearchRequest
from agent.sources.http import MAX_BYTES, make_client
from agent.sources.live.pubmed import read_articles
from tests.agent.sources.live.apiserver import Reply, Route, gzip_bomb, json_reply
from tests.agent.sources.live.backend_cases import NOW
from tests.agent.sources.live.standalone_cases import KINDS, NAMES, failure, found
from tests.agent.sources.live.test_failures import EVERYWHERE

EPOCH: Final = str(int(NOW.timestamp()) + 42)
OWN: Final[Mapping[str, list[tuple[Reply, str, float | None]]]] = {
    "openalex": [
        (json_reply({"error": "Unauthorized", "message": "Invalid API key"}, 401), "auth", None),
        (json_reply({"error": "Rate limit exceeded"}, 403), "rate", None),
        (json_reply({"error": "Too Many Requests", "message": "daily"}, 429, retry_after="600"), "quota", 600.0),
        (json_reply({"error": "Invalid filter", "message": "Unknown filter field"}, 400), "bad_query", None),
    ],
    "pubmed": [
        (json_reply({"error": "API key invalid", "api-key": "x"}, 400), "auth", None),
        (json_reply({"error": "API rate limit exceeded", "count": "4", "limit": "3"}, 429), "rate", None),
        (json_reply({"esearchresult": {"ERROR": "Search Backend failed"}}), "bad_query", None),
        (json_reply({"esearchresult": {}}), "parse", None),
        (Reply(b"", 402), "quota", None),
    ],
    "semanticscholar": [
        (json_reply({"message": "Forbidden"}, 403), "auth", None),
        (json_reply({"message": "Too Many Requests", "code": "429"}, 429), "rate", None),
        (json_reply({"error": "Unrecognized or unsupported fields"}, 400), "bad_query", None),
        (Reply(b"", 402), "quota", None),
    ],
    "github": [
        (json_reply({"message": "Bad credentials"}, 401), "auth", None),
        (json_reply({"message": "Resource not accessible"}, 403), "auth", None),
        (json_reply({"message": "API rate limit exceeded"}, 403, x_ratelimit_remaining="0", x_ratelimit_reset=EPOCH), "rate", 42.0),
        (json_reply({"message": "You have exceeded a secondary rate limit"}, 403), "rate", 60.0),
        (json_reply({"message": "slow"}, 429, retry_after="9"), "rate", 9.0),
        (json_reply({"message": "x"}, 429, x_ratelimit_remaining="0", x_ratelimit_reset="9" * 400), "rate", 60.0),
        (json_reply({"message": "Validation Failed", "errors": [{"code": "invalid"}]}, 422), "bad_query", None),
        (Reply(b"", 402), "quota", None),
    ],
}  # fmt: skip
CASES: Final = [(name, *case) for name in NAMES for case in [*OWN[name], *EVERYWHERE]]


@pytest.mark.parametrize(("name", "reply", "kind", "retry_after"), CASES)
def test_a_failure_has_its_kind_and_the_time_to_wait(name: str, reply: Reply, kind: str, retry_after: float | None):
    error = failure(name, reply)
    assert (error.kind, error.retry_after) == (kind, retry_after), str(error)
    assert name in str(error)


@pytest.mark.parametrize("name", NAMES)
def test_each_kind_of_error_is_met(name: str):
    met = {kind for _, kind, _ in [*OWN[name], *EVERYWHERE]}
    assert met == {"auth", "quota", "rate", "bad_query", "upstream", "parse"}, "timeout has its own test"


@pytest.mark.parametrize("name", NAMES)
def test_an_api_that_hangs_is_a_timeout_and_one_that_no_one_serves_is_upstream(name: str):
    assert failure(name, Reply(how="hang"), seconds=0.5).kind == "timeout"

    async def unserved() -> None:
        async with make_client() as client:
            await KINDS[name](client, base="http://127.0.0.1:1").search(SearchRequest("q", limit=3))

    with pytest.raises(SourceError) as caught:
        asyncio.run(unserved())
    assert caught.value.kind == "upstream"


@pytest.mark.parametrize("name", NAMES)
def test_a_gzip_bomb_ends_early_and_small(name: str):
    bomb = gzip_bomb()
    tracemalloc.start()
    try:
        assert "more than 8 MB" in str(failure(name, bomb))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * MAX_BYTES


def fetched(body: bytes) -> Route:
    """PubMed, whose articles are these."""
    return lambda request: Reply(body) if "efetch" in request.path else found("pubmed")(request)  # type: ignore[operator]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<PubmedArticleSet>",
        b"<html>Welcome</html>",
        b"\xff\xfe\x00",
        '<!DOCTYPE x [<!ENTITY a "aa">]><PubmedArticleSet/>'.encode("utf-16"),
        b'<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;">]><PubmedArticleSet>&b;</PubmedArticleSet>',
        b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><PubmedArticleSet>&a;</PubmedArticleSet>',
    ],
)
def test_xml_that_is_broken_or_declares_entities_is_refused(body: bytes):
    assert failure("pubmed", fetched(body)).kind == "parse"


def test_xml_that_is_nested_without_an_end_is_read_or_refused():
    deep = 200_000
    title = b"<b>" * deep + b"x" + b"</b>" * deep
    body = b"<PubmedArticleSet><PubmedArticle><MedlineCitation><Article><ArticleTitle>" + title
    body += b"</ArticleTitle></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"
    assert [row.title for row in read_articles(body)] == ["x"]
