"""However arXiv, Wikipedia and Wikidata fail, their backends end with an error of the right kind."""

import tracemalloc
from collections.abc import Sequence

import httpx2
import pytest

from agent.errors import SourceError
from agent.sources.base import SearchRequest
from agent.sources.http import MAX_BYTES, make_client
from tests.agent.sources.live.apiserver import (
    ApiRequest,
    ApiServer,
    Reply,
    Route,
    gzip_bomb,
    json_reply,
    run,
    text_reply,
)
from tests.agent.sources.live.knowledge import (
    MAKERS,
    answered,
    binding,
    feed,
    fixture,
    hit,
    lina,
    rows,
    search,
    statement,
)

NAMES = sorted(MAKERS)
JSON = {"content-type": "application/json"}
Case = tuple[Reply, str, float | None]

EVERYWHERE: Sequence[Case] = [
    (Reply(b"Unauthorized", 401), "auth", None),
    (Reply(b"slow down", 429, {"retry-after": "7"}), "rate", 7.0),
    (Reply(b"slow down", 429), "rate", None),
    (Reply(b"malformed query", 400), "bad_query", None),
    (Reply(b"", 408), "timeout", None),
    (Reply(b"oops", 500), "upstream", None),
    (Reply(b"", 502, {"retry-after": "3"}), "upstream", 3.0),
    (Reply(b"<html>down for maintenance</html>", 503), "upstream", None),
    (text_reply("<html>Welcome</html>"), "parse", None),
    (Reply(b""), "parse", None),
    (Reply(b"\xff\xfe\x00"), "parse", None),
    (Reply(b"no gzip", headers={"content-encoding": "gzip"}), "parse", None),
    (Reply(b'{"search": []}' + b" " * 1000, how="reset"), "upstream", None),
]
NO_JSON: Sequence[Case] = [
    (Reply(b'{"query": [', headers=JSON), "parse", None),
    (Reply(b"[" * 100_000, headers=JSON), "parse", None),
    (json_reply([1, 2]), "parse", None),
    (json_reply("results"), "parse", None),
    (json_reply(None), "parse", None),
    (json_reply({"error": {"code": "ratelimited", "info": "slow"}}, retry_after="9"), "rate", 9.0),
    (json_reply({"error": {"code": "badvalue", "info": "no"}}), "bad_query", None),
    (json_reply({"error": {"code": "internal_api_error", "info": "no"}}), "upstream", None),
    (json_reply({"error": "no object"}), "upstream", None),
]
OWN: dict[str, Sequence[Case]] = {
    "arxiv": [
        (Reply(b"Forbidden", 403), "quota", None),
        (text_reply("Rate exceeded."), "rate", None),
        (feed(total=250), "upstream", None),
        (Reply(b"<feed"), "parse", None),
        (Reply(b"<feed></deef></feed>\x00"), "parse", None),
        (Reply(fixture("arxiv/q_testing.xml")[:9000]), "parse", None),
        (Reply(fixture("arxiv/q_testing.xml"), how="reset"), "upstream", None),
    ],
    "mediawiki": [(Reply(b"Please set a user-agent", 403), "auth", None), *NO_JSON],
    "wikidata": [
        (Reply(b"Please set a user-agent", 403), "auth", None),
        *NO_JSON,
        (json_reply({"success": 1}), "parse", None),
        (json_reply({"search": [7]}), "parse", None),
        (json_reply({"search": [{"label": "no id"}]}), "parse", None),
    ],
}
CASES = [(name, *case) for name in NAMES for case in [*EVERYWHERE, *OWN[name]]]


def failure(name: str, reply: Reply, *, seconds: float = 5.0) -> SourceError:
    async def test(server: ApiServer) -> SourceError:
        server.routes["*"] = reply
        with pytest.raises(SourceError) as caught:
            await search(server, MAKERS[name], seconds=seconds)
        assert len(server.requests) == 1, "a backend makes one attempt"
        return caught.value

    return run(test)


@pytest.mark.parametrize(("name", "reply", "kind", "retry_after"), CASES)
def test_a_failure_has_its_kind_and_the_time_to_wait(name: str, reply: Reply, kind: str, retry_after: float | None):
    error = failure(name, reply)
    assert (error.kind, error.retry_after) == (kind, retry_after), str(error)
    assert name in str(error)


@pytest.mark.parametrize("name", NAMES)
def test_an_api_that_hangs_is_a_timeout(name: str):
    assert failure(name, Reply(how="hang"), seconds=0.5).kind == "timeout"


@pytest.mark.parametrize("name", NAMES)
def test_an_api_that_no_one_serves_is_an_upstream_failure(name: str):
    async def test(server: ApiServer) -> None:
        async with make_client() as client:
            with pytest.raises(SourceError, match=name) as caught:
                await MAKERS[name](client, "http://127.0.0.1:1").search(SearchRequest("lina orr", limit=3))
        assert caught.value.kind == "upstream"

    run(test)


@pytest.mark.parametrize("name", NAMES)
def test_a_client_that_gives_up_by_itself_is_a_timeout_too(name: str):
    async def test(server: ApiServer) -> None:
        server.routes["*"] = Reply(how="hang")

        async def hurry(request: httpx2.Request) -> None:
            request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), 0.1)

        async with httpx2.AsyncClient(trust_env=False, event_hooks={"request": [hurry]}) as client:
            with pytest.raises(SourceError) as caught:
                await MAKERS[name](client, server.base).search(SearchRequest("lina orr", limit=3))
        assert caught.value.kind == "timeout"

    run(test)


@pytest.mark.parametrize("name", NAMES)
def test_a_gzip_bomb_ends_early_and_small(name: str):
    bomb = gzip_bomb()
    tracemalloc.start()
    try:
        error = failure(name, bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.kind == "parse"
    assert "more than 8 MB" in str(error)
    assert peak < 4 * MAX_BYTES, f"{peak >> 20} MB of a bomb of 300 MB"


def test_a_bomb_within_the_xml_does_not_go_off():
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    head = f'<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY l0 "lol">{laughs}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    body = feed("<entry><id>http://arxiv.org/abs/1</id><title>&l11;&f;</title></entry>").body.decode()
    reply = Reply((head + body.partition("?>")[2]).encode())
    tracemalloc.start()
    try:
        assert failure("arxiv", reply).kind == "upstream"  # the paper has no date: there is none on the page
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_BYTES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("query", "limit"), [("", 3), ("  ", 3), ("lina orr", 0)])
def test_nothing_is_requested_for_nothing(name: str, query: str, limit: int):
    async def test(server: ApiServer) -> None:
        assert (await search(server, MAKERS[name], query, limit=limit)).passages == ()
        assert not server.requests

    run(test)


@pytest.mark.parametrize(
    ("name", "empty"),
    [("arxiv", feed()), ("mediawiki", json_reply({"batchcomplete": True})), ("wikidata", json_reply({"search": []}))],
)
def test_an_empty_result_is_an_answer(name: str, empty: Reply):
    hits, _ = answered(MAKERS[name], empty)
    assert (hits.passages, hits.backend, hits.notes, hits.credits) == ((), name, (), 0.0)


SPARQL: Sequence[Case] = [
    *(case for case in EVERYWHERE if case[0].how == "whole"),
    *NO_JSON[:5],
    (Reply(b"banned", 403), "quota", None),
    (
        text_reply(
            "SPARQL-QUERY: queryStr=SELECT\njava.util: org.openrdf.query.MalformedQueryException: no {\n at", 400
        ),
        "bad_query",
        None,
    ),
    (text_reply("java.util.concurrent.TimeoutException\n\tat java.util", 500), "timeout", None),
    (json_reply({"results": {}}), "parse", None),
    (json_reply({"results": {"bindings": [{"x": {"type": "uri"}}]}}), "parse", None),
    (Reply(rows().body, how="reset"), "upstream", None),
    (Reply(b'{"results"' + b" " * 100, how="reset"), "upstream", None),
]


@pytest.mark.parametrize(("reply", "kind", "retry_after"), SPARQL)
def test_a_failure_of_the_query_service_has_its_kind(reply: Reply, kind: str, retry_after: float | None):
    world = lina()
    world.sparql = reply
    with pytest.raises(SourceError) as caught:
        answered(MAKERS["wikidata"], world, "SELECT ?x WHERE { ?x ?y ?z }")
    assert (caught.value.kind, caught.value.retry_after) == (kind, retry_after), str(caught.value)


def test_a_bomb_from_the_query_service_ends_early():
    world = lina()
    world.sparql = gzip_bomb()
    with pytest.raises(SourceError, match="more than 8 MB"):
        answered(MAKERS["wikidata"], world, "SELECT ?x WHERE { ?x ?y ?z }")


def test_a_query_that_cannot_be_read_says_why():
    world = lina()
    world.sparql = text_reply('org.openrdf.query.MalformedQueryException: Encountered "}" at line 1\n\tat x', 400)
    with pytest.raises(SourceError, match=r"wikidata cannot read the SPARQL: Encountered \"\}\" at line 1$"):
        answered(MAKERS["wikidata"], world, "SELECT ?x WHERE { ?x ?y }")


BROKEN = "a\ud800\x00 b"
"""Half of a pair and a null: JSON can say them, no file and no other program takes them."""


def broken_wiki() -> Route:
    page = {"pageid": 1, "title": BROKEN, "index": 1, "extract": BROKEN, "fullurl": "javascript:alert(1)"}
    found = {"title": BROKEN, "snippet": BROKEN, "timestamp": BROKEN}
    return json_reply({"query": {"pages": [page], "search": [found]}})


def broken_wikidata() -> Route:
    world = lina()
    world.search["lina orr"] = [hit("Q1001", BROKEN, BROKEN, BROKEN), hit("../Q7", "no id")]
    world.names = dict.fromkeys(("P19", "Q546", "P569"), BROKEN)
    world.statements["Q1001"] |= {"P1": [statement("P1", BROKEN, "string")]}
    world.statements["Q1001"] |= {"P2": [statement("P2", {"language": "en", "text": BROKEN}, "monolingualtext")]}
    world.sparql = rows(binding(s="Q2001", sLabel=BROKEN, p="P57", pLabel=BROKEN))
    return world


@pytest.mark.parametrize(
    ("name", "route", "query"),
    [
        ("mediawiki", broken_wiki(), "lina orr"),
        ("wikidata", broken_wikidata(), "films by Lina Orr"),
        ("wikidata", broken_wikidata(), "SELECT ?s WHERE { ?s ?p ?o }"),
    ],
)
def test_what_no_text_has_is_taken_out(name: str, route: Route, query: str):
    hits, _ = answered(MAKERS[name], route, query, limit=50)
    assert hits.passages
    said = " ".join(f"{hit.id} {hit.title} {hit.text} {hit.url} {hit.date}" for hit in hits.passages)
    assert said.encode()
    assert "\x00" not in said
    assert "javascript" not in said
    assert "a b" in said


def test_a_batch_of_names_that_fails_ends_the_search_with_its_own_error():
    world = lina()

    def route(request: ApiRequest) -> Reply:
        return Reply(b"", 429, {"retry-after": "4"}) if "ids" in request.params else world(request)

    with pytest.raises(SourceError) as caught:
        answered(MAKERS["wikidata"], route, "birthplace of Lina Orr")
    assert (caught.value.kind, caught.value.retry_after) == ("rate", 4.0)
