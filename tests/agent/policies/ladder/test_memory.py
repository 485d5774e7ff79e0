"""A model's exam is taken once, and what is remembered of it can be lost, harmed or old without harm."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.outbound.llm import LlmClient
from agent.outbound.retries import Retries
from agent.policies.ladder.choosing import REMEMBERED_DAYS, Remembered, recall, remember
from agent.policies.openai_policy import OpenAiPolicy
from tests.agent.policies.chat_server import Refusal, chat_server
from tests.agent.policies.ladder.test_rollouts import EXAM_BY_TOOLS

MODEL = ("http://127.0.0.1:1/v1", "m", "", "8192")


async def _rung(url: str, *, fresh: bool = False) -> str:
    policy = OpenAiPolicy(
        LlmClient(base_url=url, model="m", retries=Retries(0)), kind="chat", continues="no", rung="auto"
    )
    try:
        await policy.prepare(fresh=fresh)
        return policy.summary
    finally:
        await policy.aclose()


def test_a_model_takes_its_exam_once_and_again_on_request():
    async def scene() -> None:
        async with chat_server(*EXAM_BY_TOOLS * 2) as server:
            assert "on the rung tools" in await _rung(server.url)
            assert len(server.requests) == 3
            assert "on the rung tools" in await _rung(server.url)
            assert len(server.requests) == 3
            await _rung(server.url, fresh=True)
            assert len(server.requests) == 6

    asyncio.run(scene())


def stored(cache: Path) -> Path:
    (path,) = (cache / "cairn" / "rungs").iterdir()
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_what_is_remembered_is_for_the_user_alone_and_of_one_model(cache: Path):
    remember("json", "it passed", *MODEL)
    found = recall(*MODEL)
    assert found is not None
    assert (found.rung, found.why) == ("json", "it passed")
    assert recall("http://127.0.0.1:2/v1", *MODEL[1:]) is None
    assert stored(cache).stat().st_mode & 0o077 == 0
    assert stored(cache).parent.stat().st_mode & 0o077 == 0


def _old(text: bytes) -> bytes:
    found = Remembered.model_validate_json(text)
    return found.model_copy(update={"at": time.time() - REMEMBERED_DAYS * 86_400 - 1}).model_dump_json().encode()


HARMS: list[Callable[[bytes], bytes]] = [
    _old,
    lambda text: text[:-5],
    lambda text: text.replace(b'"json"', b'"protocol"'),
    lambda text: text + b" " * 20_000,
    lambda _: b"\xff\x00",
]


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_harmed_or_old_is_as_good_as_nothing(cache: Path, harm: Callable[[bytes], bytes]):
    remember("json", "", *MODEL)
    stored(cache).write_bytes(harm(stored(cache).read_bytes()))
    assert recall(*MODEL) is None
    remember("words", "", *MODEL)
    found = recall(*MODEL)
    assert found is not None
    assert found.rung == "words"


def test_a_folder_that_cannot_be_written_costs_only_the_exam(cache: Path):
    (cache / "cairn").write_text("no folder", encoding="utf-8")
    remember("json", "", *MODEL)
    assert recall(*MODEL) is None


def test_a_server_that_failed_during_the_exam_is_examined_again(cache: Path):
    async def scene() -> None:
        async with chat_server(*[Refusal(500)] * 3, *EXAM_BY_TOOLS) as server:
            assert "on the rung plain" in await _rung(server.url)
            assert "on the rung tools" in await _rung(server.url)

    asyncio.run(scene())
