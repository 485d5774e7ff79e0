"""A server on standard streams: a real process of the official SDK, and one written by hand to break the protocol."""

import asyncio
import logging
import os
import shutil
import sys
import time
from contextlib import suppress
from typing import Any

import pytest

from agent.errors import SourceError
from agent.sources.base import SearchRequest
from agent.sources.mcp.stdio import StdioTransport
from tests.agent.sources.mcp.servers import GOOD, RAW, ends, find, found, said, stdio, use

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are looked at as Linux shows them")
LINUX = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks into /proc")
SERVER = [*GOOD, "stdio"]


def failure(mode: str, **options: Any) -> SourceError:
    source = stdio([*RAW, mode], **options)
    with pytest.raises(SourceError) as caught:
        found(source)
    return caught.value


def test_a_list_of_results_becomes_passages_with_their_addresses_and_dates():
    source = stdio(SERVER, tool="search", limit="most", arguments={"lang": "de"})
    assert said(found(source, limit=2)) == [
        ("Aurora Falls", "It drops 94 metres.", "https://example.org/falls", "2026-11-03"),
        ("Only a link", "", "https://example.org/link", ""),
    ]


def test_the_tool_that_searches_is_found_and_its_query_by_the_schema():
    passages = found(stdio([*RAW, "ok"]))
    assert said(passages) == [("search", "answered by ok", "", "")]
    assert passages[0].source == "papers"


@pytest.mark.parametrize(
    ("tool", "passages"),
    [
        ("blocks", [("blocks", "first about aurora falls", "", ""), ("blocks", "second", "", "")]),
        ("json_text", [("Falls", "A body.", "https://example.org/a", "")]),
        (
            "resources",
            [
                ("page.txt", "An embedded page.", "https://example.org/docs/page.txt", ""),
                ("More", "Read on.", "https://example.org/more", ""),
                ("passwd", "A file.", "", ""),
            ],
        ),
        ("nothing", []),
    ],
)
def test_every_kind_of_content_is_read_and_no_link_is_opened(tool: str, passages: list[tuple[str, str, str, str]]):
    assert said(found(stdio(SERVER, tool=tool))) == passages


def test_of_a_long_text_the_part_that_fits_is_shown_and_the_rest_of_an_answer_left_out():
    (passage,) = found(stdio(SERVER, tool="page"), "how far do the falls of Aurora drop")
    assert "94 metres" in passage.text
    assert len(passage.text) <= 3_000
    assert found(stdio(SERVER, tool="page", most_chars=200), "falls of Aurora")[0].text.count("Sentence") < 10


def test_one_process_answers_all_searches_and_ends_with_the_source():
    source = stdio(SERVER, tool="environment", environment={"PAPERS_PLACE": "here"})

    async def work() -> list[str]:
        many = await asyncio.gather(*(find(source) for _ in range(4)))
        server, _ = await source.opened()
        return [passages[0].text for passages in many] + [str(id(server))]

    texts = use(source, work)
    assert len({*texts[:-1]}) == 1


@LINUX
def test_a_process_that_does_not_end_by_itself_is_ended_with_its_children():
    source = stdio([*RAW, "stubborn"])

    async def work() -> tuple[int, int]:
        await find(source)
        server, _ = await source.opened()
        held = server.transport
        assert isinstance(held, StdioTransport)
        return held.pid, int(held.why.removeprefix("child "))

    process, child = use(source, work)
    assert ends(process)
    assert ends(child)


@LINUX
def test_a_process_ends_with_the_event_loop_even_if_no_one_closes_the_source():
    source = stdio(SERVER, tool="child")

    async def work() -> tuple[int, int]:
        (passage,) = await find(source)
        server, _ = await source.opened()
        assert isinstance(server.transport, StdioTransport)
        return server.transport.pid, int(passage.text)

    process, child = asyncio.run(work())
    assert ends(process)
    assert ends(child)


@LINUX
def test_the_process_knows_no_variable_that_no_setting_names(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CAIRN_TAVILY_KEY", "tvly-very-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    (passage,) = found(stdio(SERVER, tool="environment", environment={"PAPERS_PLACE": "here"}))
    names = {line.partition("=")[0] for line in passage.text.splitlines()}
    assert "PAPERS_PLACE" in names
    assert not {name for name in names if "KEY" in name or name.startswith("CAIRN")}
    assert "very-secret" not in passage.text


def test_what_only_the_server_may_know_is_in_no_passage():
    source = stdio(
        SERVER, tool="environment", environment={"PAPERS_TOKEN": "token-0123456789"}, secrets=["token-0123456789"]
    )
    (passage,) = found(source)
    assert "PAPERS_TOKEN=***" in passage.text


@pytest.mark.parametrize(
    ("mode", "kind", "why"),
    [
        ("end", "upstream", "papers cannot be opened: its process ended with 3: ModuleNotFoundError: No module named 'papers'"),
        ("close", "upstream", "papers broke off: its process ended with 0"),
        ("flood", "upstream", "papers broke off: it wrote more than 8 MB"),
        ("flood-messages", "upstream", "papers broke off: it wrote more than 8 MB"),
        ("shape", "parse", "papers sent what cannot be read"),
        ("no-tools", "bad_query", "papers has no tools"),
        ("pages", "bad_query", "papers has several tools"),
    ],
)  # fmt: skip
def test_a_server_that_breaks_the_protocol_is_a_failure_of_its_kind(mode: str, kind: str, why: str):
    error = failure(mode)
    assert (error.kind, str(error)[: len(why)]) == (kind, why)


def test_a_server_that_does_not_speak_mcp_is_a_timeout_that_says_what_it_wrote():
    error = failure("banner-only", start_seconds=1.0)
    assert error.kind == "timeout"
    assert "did not start to speak MCP in 1 s: it wrote 'Welcome to the server!', which is no message" in str(error)
    assert failure("silent", start_seconds=1.0).kind == "timeout"


def test_lines_that_are_no_messages_are_passed_over():
    assert said(found(stdio([*RAW, "banner"]))) == [("search", "answered by banner", "", "")]
    assert found(stdio([*RAW, "nested"]))[0].text.startswith("[[[")


def test_a_command_that_is_not_there_is_a_sentence():
    with pytest.raises(SourceError, match=r"papers cannot be opened: .*no-such-program") as caught:
        found(stdio(["no-such-program"]))
    assert caught.value.kind == "upstream"


def test_the_program_is_the_one_that_its_own_path_finds_as_a_script_of_windows_must_be(monkeypatch: pytest.MonkeyPatch):
    def which(name: str, path: str | None) -> str | None:
        return sys.executable if (name, path) == ("npx.test", "/of/it") else None

    monkeypatch.setattr(shutil, "which", which)
    source = stdio(["npx.test", *RAW[1:], "ok"], environment={"PATH": "/of/it"})
    assert said(found(source)) == [("search", "answered by ok", "", "")]


def test_an_error_of_the_tool_is_a_failure_that_no_second_try_would_help():
    with pytest.raises(SourceError, match="papers answered with an error: ") as caught:
        found(stdio(SERVER, tool="wrong"))
    assert caught.value.kind == "bad_query"


def test_a_server_that_hangs_is_a_timeout_and_after_two_it_is_started_again():
    source = stdio(SERVER, tool="hang", seconds=0.3)

    async def work() -> list[object]:
        first, _ = await source.opened()
        for _ in range(2):
            with pytest.raises(SourceError, match=r"did not answer in 0\.3 s") as caught:
                await source.search(SearchRequest("q", limit=1))
            assert caught.value.kind == "timeout"
        second, _ = await source.opened()
        return [first, second]

    first, second = use(source, work)
    assert first is not second


def test_a_server_that_died_is_started_again_by_the_next_search():
    source = stdio(SERVER, tool="die")

    async def work() -> None:
        for _ in range(2):
            with pytest.raises(SourceError, match="papers broke off: its process ended with 7: out of memory"):
                await find(source)

    use(source, work)


def test_who_leaves_while_a_server_starts_does_not_stop_it():
    source = stdio(SERVER, tool="search")

    async def work() -> int:
        with pytest.raises(SourceError, match=r"no answer in 0\.01 s"):
            await find(source, seconds=0.01)
        return len(await find(source))

    assert use(source, work) == 3


def test_a_flood_while_no_one_searches_stops_at_the_bound():
    source = stdio([*RAW, "flood"], seconds=5.0)

    async def work() -> float:
        with pytest.raises(SourceError):
            await find(source)
        began = time.process_time()
        await asyncio.sleep(0.3)
        return time.process_time() - began

    assert use(source, work) < 0.2


def test_nothing_is_started_for_nothing():
    assert found(stdio(["no-such-program"]), "  ") == []
    assert found(stdio(["no-such-program"]), limit=0) == []


def test_no_failure_is_logged_twice_and_no_query_at_all(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    for mode in ("banner", "shape", "close"):
        source = stdio([*RAW, mode])
        with suppress(SourceError):
            found(source, "a very private question")
    assert "private" not in caplog.text
    assert "Traceback" not in caplog.text
