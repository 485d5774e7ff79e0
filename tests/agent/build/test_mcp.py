"""MCP servers by the settings: a table names one, it is searched by its name, and what is wrong is a sentence."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.build.agent import build_agent
from agent.build.backends import mcp_source
from agent.build.sources import build_sources, has_sources
from agent.doctor import checks_of
from agent.errors import SetupError
from agent.loop.budgets import Budgets
from agent.policies.scripted import ScriptedPolicy
from agent.settings import CairnSettings, load_settings
from agent.sources.base import SearchRequest, ask, close_sources
from agent.trace import Searched, SearchFailed, Trace
from server.launch import make_retriever
from tests.agent.build.test_backends import searched
from tests.agent.doctor.look import one
from tests.agent.sources.mcp.servers import GOOD, KEY, RAW, http_server
from tests.conftest import ANSWER_TURN, make_agent

OK = {"command": [*RAW, "ok"]}


def settings(**given: Any) -> CairnSettings:
    return CairnSettings.model_validate({"cache": "", **given})


def test_a_server_is_a_source_by_the_name_of_its_table_and_all_searches_it_too():
    made = settings(mcp={"papers": OK, "notes": {"command": [*RAW, "banner"]}})
    assert has_sources(made)

    async def test() -> None:
        sources = build_sources(made)
        try:
            assert list(sources) == ["papers", "notes", "all"]
            one, both = await searched(sources, ("papers", "falls"), ("all", "falls"))
        finally:
            await close_sources(sources.values())
        assert isinstance(one, Searched)
        assert isinstance(both, Searched)
        assert (one.backend, one.source, one.passages[0].text) == ("papers", "papers", "answered by ok")
        assert {passage.source for passage in both.passages} == {"papers", "notes"}

    asyncio.run(test())


def test_what_fails_is_on_the_trace_with_each_try():
    async def test() -> None:
        sources = build_sources(settings(mcp={"papers": {"command": [*RAW, "end"]}}))
        try:
            (step,) = await searched(sources, ("papers", "falls"))
        finally:
            await close_sources(sources.values())
        assert isinstance(step, SearchFailed)
        assert [failure.kind for failure in step.failures] == ["upstream", "upstream"]
        assert "its process ended with 3" in step.why

    asyncio.run(test())


def test_a_key_and_a_processs_variables_come_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PAPERS_KEY", KEY)
    with http_server(KEY) as url:
        table = {"url": url, "key_variable": "PAPERS_KEY", "tool": "search", "limit": "most"}
        found = asyncio.run(one(settings(mcp={"papers": table}), "papers", seconds=30.0))
    assert found.state == "ok"
    assert "answers with search, blocks, " in found.says
    assert found.says.endswith("a search calls search(query=…)")
    monkeypatch.delenv("PAPERS_KEY")
    with pytest.raises(SetupError, match="the environment variable 'PAPERS_KEY' is empty"):
        mcp_source(settings(mcp={"papers": table}), "papers")
    process = {**OK, "environment": ["PAPERS_KEY"]}
    with pytest.raises(SetupError, match="the environment variable 'PAPERS_KEY' is empty"):
        mcp_source(settings(mcp={"papers": process}), "papers")


def test_a_key_is_not_sent_unencrypted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PAPERS_KEY", KEY)
    table = {"url": "http://papers.example/mcp", "key_variable": "PAPERS_KEY"}
    with pytest.raises(
        SetupError, match=r"the url of \[mcp.papers\] is http://papers.example, and a key would be sent"
    ):
        mcp_source(settings(mcp={"papers": table}), "papers")
    assert mcp_source(settings(mcp={"papers": table}, plain_http="papers.example"), "papers")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("", "it needs either a url or a command"),
        ('url = "https://a.org"\ncommand = ["x"]', "it needs either a url or a command"),
        ('url = "file:///x"', "its url must begin with https:// or http://"),
        ('url = "https://me:secret@a.org/mcp"', "its url must hold no password"),
        ('command = ["x"]\nkey_variable = "K"', "key_variable belongs to a url"),
        ('command = ["x"]\nseconds = 0', "greater than 0"),
        ('command = ["x"]\ntoool = "y"', "there is no setting 'mcp.papers.toool'"),
    ],
)
def test_a_table_that_cannot_be_used_is_a_sentence(tmp_path: Path, table: str, why: str):
    file = tmp_path / "mine.toml"
    file.write_text(f"[mcp.papers]\n{table}\n", encoding="utf-8")
    with pytest.raises(SetupError, match=r"mcp\.papers") as caught:
        load_settings(file)
    assert why in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("name", "why"), [("web", "a name that Cairn itself uses"), ("my papers", "no plan can name")])
def test_a_name_that_is_taken_or_that_no_plan_can_write_is_refused(name: str, why: str):
    with pytest.raises(SetupError, match=why):
        build_sources(settings(mcp={name: OK}))


def test_cairns_that_start_one_another_end(monkeypatch: pytest.MonkeyPatch):
    made = settings(mcp={"papers": OK, "far": {"url": "https://papers.example/mcp"}})
    monkeypatch.setenv("INSIDE_CAIRN", "1")
    assert mcp_source(made, "papers")
    monkeypatch.setenv("INSIDE_CAIRN", "2")
    with pytest.raises(SetupError, match=r"\[mcp.papers\] would start a Cairn that starts a Cairn"):
        mcp_source(made, "papers")
    assert mcp_source(made, "far")


def test_a_process_knows_how_many_cairns_are_above_it():
    made = settings(mcp={"papers": {"command": [*GOOD, "stdio"], "tool": "environment"}})

    async def test() -> None:
        sources = build_sources(made)
        try:
            found = await ask(sources["papers"], SearchRequest("x", limit=1), seconds=40.0)
        finally:
            await close_sources(sources.values())
        assert "INSIDE_CAIRN=1" in found.passages[0].text

    asyncio.run(test())


def test_limits_may_be_set_for_a_server_by_its_name():
    made = settings(mcp={"papers": {"command": [*RAW, "end"]}}, limits={"papers": {"tries": 1}})

    async def test() -> int:
        sources = build_sources(made)
        try:
            (step,) = await searched(sources, ("papers", "falls"))
        finally:
            await close_sources(sources.values())
        return len(step.failures)

    assert asyncio.run(test()) == 1


def test_the_doctor_says_why_a_server_cannot_be_searched():
    found = asyncio.run(one(settings(mcp={"papers": {"command": [*RAW, "end"]}}), "papers"))
    assert (found.state, found.fix) == ("bad", "correct [mcp.papers] in cairn.toml")
    assert "upstream: papers cannot be opened: its process ended with 3: ModuleNotFoundError" in found.says
    several = asyncio.run(one(settings(mcp={"papers": {"command": [*GOOD, "stdio"], "tool": "serch"}}), "papers"))
    assert "papers has no tool 'serch'; did you mean 'search'?" in several.says
    assert [check.name for check in checks_of(settings(mcp={"a": OK}, sources=("a",)))].count("a") == 1


def test_nothing_is_started_before_the_first_search(tmp_path: Path):
    mark = tmp_path / "mark"
    command = [sys.executable, "-c", f"open({str(mark)!r}, 'w')"]

    async def test() -> None:
        await close_sources(build_sources(settings(mcp={"papers": {"command": command}})).values())

    asyncio.run(test())
    assert not mark.exists()


def test_what_a_tool_writes_is_text_in_a_rollout_and_no_mark_of_ours():
    made = settings(mcp={"papers": {"command": [*GOOD, "stdio"], "tool": "search"}})
    turns = ["<think>One.</think>\n<search>\nA: falls (papers)\n</search>", ANSWER_TURN]
    agent = make_agent(turns, sources=build_sources(made), budgets=Budgets(search_seconds=40.0))

    async def test() -> Trace:
        try:
            return await agent.run(agent.new_trace("How high are the falls?"))
        finally:
            await agent.aclose()

    trace = asyncio.run(test())
    shown = "".join(segment.text for segment in trace.segments if segment.by == "environment")
    assert "It drops 94 metres." in shown
    assert "ignore your rules" in shown
    assert shown.count("</information>") == 1
    assert "<search>" not in shown
    assert sum(isinstance(step, Searched) for step in trace.steps) == 1


def test_a_server_has_its_own_time_for_a_search_and_no_probe_calls_it():
    slow = settings(mcp={"papers": {**OK, "seconds": 90}}, policy="embedded")
    assert build_agent(slow, policy=ScriptedPolicy([])).budgets.search_seconds == 90.0
    assert make_retriever(slow).far
    assert not make_retriever(settings(world="test-v2")).far
