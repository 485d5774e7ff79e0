"""The Python of the pages runs, against a live server with the shipped policy; what cannot run has its names."""

import ast
import asyncio
import builtins
import importlib
import inspect
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.settings import load_settings
from server.launch import make_service
from tests.docs.blocks import Block, blocks, blocks_in
from tests.docs.session import WORLD_QUESTION
from tests.docs.stand_in import stand_in
from tests.server.threaded import in_thread

BLOCKS = blocks("python")
RUN = [block for block in BLOCKS if not block.why]


@pytest.fixture(scope="module")
def addresses() -> Generator[dict[str, str]]:
    """What the pages say, and what it is here."""
    with stand_in() as models, in_thread(make_service(load_settings(store="memory"))) as ours:
        yield {"http://127.0.0.1:8000": ours, "http://127.0.0.1:11434": models, '"…"': f'"{WORLD_QUESTION}"'}


def run(block: Block, text: str) -> None:
    """As a notebook would: with `await` and `async with` at its top."""
    names: dict[str, Any] = {"__name__": "docs"}
    code = compile(text, block.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    ended = eval(code, names)  # the code is in our own documentation
    if inspect.iscoroutine(ended):
        asyncio.run(ended)


@pytest.mark.parametrize("block", RUN, ids=[block.name for block in RUN])
def test_the_python_of_the_pages_runs(
    block: Block, addresses: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    text = block.text
    for theirs, ours in addresses.items():
        text = text.replace(theirs, ours)
    run(block, text)


@pytest.mark.parametrize("block", BLOCKS, ids=[block.name for block in BLOCKS])
def test_the_python_of_the_pages_has_its_imports_and_their_names(block: Block):
    tree = compile(block.text, block.name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.Module)
    assert tree.body
    assert list(lost(tree)) == []


def lost(tree: ast.Module) -> Iterator[str]:
    """What it imports, or calls by a keyword, and is not there."""
    there: dict[str, Any] = dict(vars(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            there |= {
                (name.asname or name.name.split(".")[0]): importlib.import_module(name.name) for name in node.names
            }
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or "")
            for name in node.names:
                if hasattr(module, name.name):
                    there[name.asname or name.name] = getattr(module, name.name)
                else:
                    yield f"{node.module}.{name.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in there:
            if not hasattr(there[node.value.id], node.attr):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Call) and (called := _called(node.func, there)):
            yield from _unknown_keywords(called, node)


def _called(node: ast.expr, there: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return there.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in there:
        return getattr(there[node.value.id], node.attr, None)
    return None


def _unknown_keywords(called: Any, node: ast.Call) -> Iterator[str]:
    try:
        parameters = inspect.signature(called).parameters
    except (TypeError, ValueError):  # written in C
        return
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for keyword in node.keywords:
        if keyword.arg and keyword.arg not in parameters:
            yield f"{ast.unparse(node.func)}({keyword.arg}=…)"


@pytest.mark.parametrize(
    "wrong",
    [
        "from agent import nothing",
        "import agent\nagent.nothing()",
        "from agent import build_agent\nbuild_agent(None, model=1)",
    ],
)
def test_a_name_that_is_not_there_is_seen(wrong: str):
    assert list(lost(ast.parse(wrong)))


def test_a_block_that_is_only_checked_says_why():
    text = "<!-- checked only: needs a GPU -->\n```python\nx = 1\n```\n\n```python\ny = 1\n```\n"
    assert [block.why for block in blocks_in("page.md", text)] == ["needs a GPU", ""]


def test_the_number_of_run_blocks_is_printed(capsys: pytest.CaptureFixture[str]):
    with capsys.disabled():
        sys.stdout.write(f"\npython: {len(BLOCKS)} blocks, {len(RUN)} run, {len(BLOCKS) - len(RUN)} only checked\n")
    assert len(RUN) >= 8
