"""However an API fails, its backend ends with an error of the right kind, and never with the key in it."""

import traceback
import tracemalloc
from collections.abc import Callable

import httpx2
import pytest

from agent.errors import SetupError, SourceError
from agent.settings.live import NEWS_BACKENDS, WEB_BACKENDS
from agent.sources.base import SearchRequest, Source
from agent.sources.http import MAX_BYTES, make_client
from agent.sources.live.brave import BraveSource
from agent.sources.live.exa import ExaSource
from agent.sources.live.gnews import GNewsSource
from agent.sources.live.serper import SerperSource
from agent.sources.live.tavily import TavilySource
from tests.agent.sources.live.apiserver import ApiServer, Reply, gzip_bomb, json_reply, run, text_reply
from tests.agent.sources.live.backend_cases import BACKEND_CASES, KEY, NAMES, answered, recorded, search, searxng

EVERYWHERE = [
    (Reply(b"oops", 500), "upstream", None),
    (Reply(b"", 502, {"retry-after": "3"}), "upstream", 3.0),
    (Reply(b"", 503), "upstream", None),
    (Reply(b"", 302, {"location": "http://127.0.0.1:1/"}), "upstream", None),
    (text_reply("<html>Welcome</html>"), "parse", None),
    (Reply(b""), "parse", None),
    (Reply(b'{"results": [', headers={"content-type": "application/json"}), "parse", None),
    (Reply(b"[" * 100_000), "parse", None),
    (Reply(b"\xff\xfe\x00"), "parse", None),
    (json_reply([1, 2]), "parse", None),
    (json_reply("results"), "parse", None),
    (json_reply(None), "parse", None),
    (Reply(b"no gzip", headers={"content-encoding": "gzip"}), "parse", None),
    (Reply(b'{"results": []}' + b" " * 1000, how="reset"), "upstream", None),
]
CASES = [
    (name, *case) for name in NAMES for case in [*BACKEND_CASES[name].errors, *EVERYWHERE]
]  # fmt: skip


def failure(name: str, reply: Reply, *, seconds: float = 5.0) -> SourceError:
    async def test(server: ApiServer) -> SourceError:
        server.routes["*"] = reply
        with pytest.raises(SourceError) as caught:
            await search(server, BACKEND_CASES[name].make, seconds=seconds)
        assert len(server.requests) == 1, "a backend makes one attempt"
        return caught.value

    return run(test)


@pytest.mark.parametrize(("name", "reply", "kind", "retry_after"), CASES)
def test_a_failure_has_its_kind_and_the_time_to_wait(name: str, reply: Reply, kind: str, retry_after: float | None):
    error = failure(name, reply)
    assert (error.kind, error.retry_after) == (kind, retry_after), str(error)
    assert name in str(error)


@pytest.mark.parametrize("name", NAMES)
def test_each_kind_of_error_is_met(name: str):
    met = {kind for _, kind, _ in [*BACKEND_CASES[name].errors, *EVERYWHERE]}
    assert met == {"auth", "quota", "rate", "bad_query", "upstream", "parse"}, "timeout has its own test"


@pytest.mark.parametrize("name", NAMES)
def test_an_api_that_hangs_is_a_timeout(name: str):
    assert failure(name, Reply(how="hang"), seconds=0.5).kind == "timeout"


@pytest.mark.parametrize("name", NAMES)
def test_an_api_that_no_one_serves_is_an_upstream_failure(name: str):
    async def test(server: ApiServer) -> None:
        async with make_client() as client:
            with pytest.raises(SourceError, match=name) as caught:
                await BACKEND_CASES[name].make(client, "http://127.0.0.1:1").search(SearchRequest("q", limit=3))
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
                await BACKEND_CASES[name].make(client, server.base).search(SearchRequest("q", limit=3))
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


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_result_is_an_answer(name: str):
    hits, _ = answered(BACKEND_CASES[name].make, BACKEND_CASES[name].empty)
    assert hits.passages == ()
    assert hits.backend == name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("query", "limit"), [("", 3), ("  ", 3), ("aurora", 0)])
def test_nothing_is_requested_for_nothing(name: str, query: str, limit: int):
    async def test(server: ApiServer) -> None:
        assert (await search(server, BACKEND_CASES[name].make, query, limit=limit)).passages == ()
        assert not server.requests

    run(test)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("status", [200, 400, 401, 403, 422, 429, 500])
def test_the_key_is_in_no_error_no_url_and_no_log_even_if_the_api_repeats_it(
    name: str, status: int, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG")

    async def test(server: ApiServer) -> None:
        server.routes["*"] = text_reply(f"The key {KEY} is unknown: {KEY}", status)
        with pytest.raises(SourceError) as caught:
            await search(server, BACKEND_CASES[name].make)
        message = "".join(traceback.format_exception(caught.value))
        assert KEY not in message
        assert "VerySecret" not in message
        (request,) = server.requests
        assert KEY not in request.target
        assert KEY.encode() not in request.body
        assert (KEY in " ".join(request.headers.values())) == (name != "searxng"), (
            "only there, and a password is packed"
        )

    run(test)
    assert "HTTP Request" in caplog.text
    assert "VerySecret" not in caplog.text


def test_every_backend_of_web_and_news_is_tried():
    assert set(NAMES) == {*WEB_BACKENDS, *NEWS_BACKENDS} - {"ddgs"}


@pytest.mark.parametrize("name", NAMES)
def test_a_key_that_an_answer_repeats_is_in_no_passage(name: str):
    fixture = recorded(BACKEND_CASES[name].fixture)
    rows = fixture.get("results") or fixture.get("articles") or fixture.get("organic") or fixture["web"]["results"]
    rows[0]["title"] = f"Echo of {KEY}"
    hits, _ = answered(BACKEND_CASES[name].make, fixture, limit=20)
    assert any(hit.title == "Echo of ***" for hit in hits.passages)
    assert not any(KEY in str(hit) for hit in hits.passages)


@pytest.mark.parametrize("source", [TavilySource, SerperSource, BraveSource, ExaSource, GNewsSource])
@pytest.mark.parametrize("key", ["", "  ", "two words", "sch\u00f6n", "line\nbreak-Secret"])
def test_a_key_that_cannot_be_one_is_refused_when_the_source_is_made(source: Callable[..., Source], key: str):
    async def test(_: ApiServer) -> None:
        async with make_client() as client:
            with pytest.raises(SetupError, match="key") as caught:
                source(client, key=key)
        assert "Secret" not in str(caught.value)

    run(test)


def test_searxng_without_a_url_is_refused():
    async def test(server: ApiServer) -> None:
        async with make_client() as client:
            for base in ("", "searx.example.org", "ftp://searx.example.org"):
                with pytest.raises(SetupError, match="URL of an instance"):
                    searxng(client, base)

    run(test)


def test_searxngs_refusals_name_the_fix():
    assert "search.formats: [html, json]" in str(failure("searxng", Reply(b"", 403)))
    assert "botdetection.ip_lists.pass_ip" in str(failure("searxng", Reply(b"", 429)))


@pytest.mark.parametrize("name", NAMES)
def test_a_filter_that_is_not_known_is_reported_and_not_fatal(name: str):
    hits, _ = answered(BACKEND_CASES[name].make, BACKEND_CASES[name].empty, where={"author": "orr"})
    assert hits.notes == (f"{name} cannot filter by 'author orr'",)
