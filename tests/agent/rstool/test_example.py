"""The example runs as it is written, with the built-in agent and a model on this machine."""

import asyncio
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.agent.rstool.reader_server import ReaderServer, reader_server

EXAMPLE = Path(__file__).parents[3] / "examples" / "evidence_for_another_model.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("evidence_for_another_model", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_shows_the_evidence(example: ModuleType, capsys: pytest.CaptureFixture[str]):
    assert asyncio.run(example.main()) is None
    printed = capsys.readouterr().out
    assert "The employer of Dilnim Korsik is Zinton Shipping." in printed
    assert "https://news.little.world/" in printed


def test_it_lets_another_model_answer(example: ModuleType, capsys: pytest.CaptureFixture[str]):
    async def scene() -> None:
        message = {"role": "assistant", "content": "Zinton Shipping"}
        server = ReaderServer(message=message)
        async with reader_server(server):
            await example.main(server.url, "small")

    asyncio.run(scene())
    assert "small: Zinton Shipping\nCairn: Zinton Shipping" in capsys.readouterr().out
