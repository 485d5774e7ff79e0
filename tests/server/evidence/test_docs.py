"""What docs/rstool.md shows is there and runs: its Python, its requests, its commands and its settings."""

import ast
import asyncio
import inspect
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from agent.cli import make_app
from agent.settings import load_settings
from server.evidence.answering import answering_of
from server.evidence.request import EvidenceRequest
from tests.agent.rstool.reader_server import ReaderServer, reader_server
from tests.server.live import make_service, serving

TEXT = (Path(__file__).parents[3] / "docs" / "rstool.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def block_with(words: str) -> str:
    (block,) = [block for block in blocks("python") if words in block]
    return block


async def run(code: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a block as a notebook would: with `await` and `async with` at its top."""
    compiled = compile(code, "docs/rstool.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    ended = eval(compiled, names)  # the code is in our own documentation
    if inspect.iscoroutine(ended):
        await ended
    return names


@pytest.fixture(autouse=True)
def _plain_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)


def test_every_block_of_python_is_run_by_a_test():
    assert len(blocks("python")) == 3


def test_the_python_form_gathers_and_lets_another_model_answer():
    async def scene() -> dict[str, Any]:
        reader = ReaderServer(message={"role": "assistant", "content": "No one knows."})
        async with reader_server(reader):
            code = block_with("await gather(").replace("http://127.0.0.1:11434/v1", reader.url)
            return await run(code, {})

    names = asyncio.run(scene())
    assert names["bundle"].size.max_chars == 4000
    assert names["said"].model == "llama3.2:3b"


def test_the_function_calling_loop_calls_the_tool_and_ends_with_an_answer():
    arguments = json.dumps({"question": "Who taught Kredel Portwick?", "max_chars": 700})
    call = {"id": "c1", "type": "function", "function": {"name": "search_evidence", "arguments": arguments}}

    wrong = call | {"function": {"name": "search_evidence", "arguments": "{"}}
    calls: list[dict[str, Any]] = [{"role": "assistant", "tool_calls": [made]} for made in (call, wrong)]

    async def scene() -> tuple[dict[str, Any], ReaderServer]:
        reader = ReaderServer(first=calls, message={"role": "assistant", "content": "Done."})
        async with reader_server(reader):
            code = block_with("tools=[tool_definition(agent)]").replace("http://127.0.0.1:11434/v1", reader.url)
            return await run(code, {}), reader

    names, reader = asyncio.run(scene())
    roles = [message["role"] for message in names["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert "BEGIN EVIDENCE" in names["messages"][2]["content"]
    assert "not valid JSON" in names["messages"][4]["content"]
    assert reader.requests[0]["tools"][0]["function"]["name"] == "search_evidence"


def test_the_mcp_client_reads_claims(capsys: pytest.CaptureFixture[str]):
    async def scene() -> None:
        async with serving(make_service()) as address:
            await run(block_with("from mcp import Client").replace("http://127.0.0.1:8000", address), {})

    asyncio.run(scene())
    assert "Lina Orr was born in Trieste." in capsys.readouterr().out


def test_the_bodies_of_its_requests_are_accepted():
    bodies = [shlex.split(line)[-1] for line in "\n".join(blocks("sh")).splitlines() if "/v1/evidence" in line]
    assert [EvidenceRequest.model_validate_json(body).stream for body in bodies] == [None, True]


def test_its_settings_are_accepted(tmp_path: Path):
    (text,) = blocks("toml")
    path = tmp_path / "cairn.toml"
    path.write_text(text, encoding="utf-8")
    answering = answering_of(load_settings(path))
    assert answering is not None
    assert answering.models == ("llama3.2:3b",)
    asyncio.run(answering.aclose())


def commands() -> list[list[str]]:
    """The words after `cairn` of every command, those that Claude Code is configured with too."""
    shown = [shlex.split(re.split(r"\s\|\s", line)[0]) for line in "\n".join(blocks("sh")).splitlines()]
    found = [words[1:] for words in shown if words[:1] == ["cairn"]]
    found += [words[words.index("--") + 2 :] for words in shown if "--" in words]
    servers = [server for text in blocks("json") for server in json.loads(text)["mcpServers"].values()]
    return found + [server["args"] for server in servers]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_command_is_there_with_its_options(words: list[str]):
    root: Any = typer.main.get_command(make_app())
    command = root.commands[words[0]]
    known = {option for parameter in command.params for option in parameter.opts}
    assert not {word for word in words if word.startswith("--")} - known
