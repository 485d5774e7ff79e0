"""A Cairn as a source of another one: `cairn mcp`, whose evidence becomes the passages that it quotes."""

import sys
from pathlib import Path

import pytest

from agent.world import load_world
from tests.agent.sources.mcp.servers import found, stdio

ROOT = Path(__file__).parents[4]


@pytest.mark.slow
def test_the_quotations_of_another_cairn_are_passages_with_their_sources(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    question = next(one for one in load_world("test-v2").questions if one.type == "chain1")
    source = stdio(
        [sys.executable, "-m", "agent.cli", "mcp"],
        environment={"CAIRN_WORLD": "test-v2", "CAIRN_STORE": "memory", "PYTHONPATH": str(ROOT)},
        tool="search_evidence",
        seconds=50.0,
    )
    passages = found(source, question.question)
    assert passages
    assert all(p.url.startswith("https://") and p.text and p.source == "papers" for p in passages)
    assert any(answer in p.text for answer in question.answers for p in passages)
