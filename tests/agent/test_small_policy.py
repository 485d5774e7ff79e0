"""The policy that reads English: who needs it, what happens where it cannot be had, and that it answers."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from agent.build.agent import build_agent, notices
from agent.build.shipped import MOST_TOKENS, SMALL, is_small, needs_small, newest_checkpoint, with_policy
from agent.settings import BudgetSettings, CairnSettings
from server.launch import make_service
from tests.agent.models.case import put_base_into_cache

TEXT = "# Lina Orr\n\nLina Orr was born in Trieste. She directed Aurora Falls in 1999.\n"


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "orr.md").write_text(TEXT, encoding="utf-8")
    return folder


@pytest.fixture
def base_is_fetched() -> None:
    put_base_into_cache()


@pytest.mark.parametrize(
    ("said", "needs"),
    [
        ({}, False),  # the little world, which the tests' environment names
        ({"world": ""}, True),
        ({"corpus": Path("documents")}, True),
        ({"live": True}, True),
        ({"corpus": Path("documents"), "checkpoint": Path("mine")}, False),
        ({"corpus": Path("documents"), "base_url": "http://127.0.0.1:1/v1", "model": "m"}, False),
        ({"corpus": Path("documents"), "policy": "transformers", "model": "m"}, False),
    ],
)
def test_it_writes_where_real_text_is_searched_and_nothing_else_is_named(said: dict[str, Any], needs: bool):
    assert needs_small(CairnSettings(**said)) == needs


def test_without_its_model_the_little_worlds_policy_answers_and_says_so(
    documents: Path, caplog: pytest.LogCaptureFixture
):
    settings = CairnSettings(corpus=documents)
    with caplog.at_level(logging.WARNING):
        kept = with_policy(settings)
        agent = build_agent(kept)
    assert kept.checkpoint == newest_checkpoint()
    assert "cairn model fetch" in caplog.text
    assert caplog.text.count("The little world's policy answers instead") == 1
    assert "trained on the little world only" in notices(kept)[0]
    assert agent.policy.name == f"cairn-{newest_checkpoint().parent.name}"
    asyncio.run(agent.aclose())


@pytest.mark.slow
@pytest.mark.usefixtures("base_is_fetched")
def test_it_answers_from_a_users_documents_with_a_citation_in_the_protocols_that_it_speaks(documents: Path):
    ready = with_policy(CairnSettings(corpus=documents))
    assert is_small(ready)
    assert ready.protocols == ("cairn", "evidence")
    assert "Answers come from small-v1" in notices(ready)[0]
    agent = build_agent(ready)
    trace = asyncio.run(agent.run(agent.new_trace("Where was Lina Orr born?")))
    asyncio.run(agent.aclose())
    assert trace.answer == "Trieste"
    assert [claim.cites for claim in trace.claims] == [(1,)]
    assert with_policy(ready) == ready
    service = make_service(CairnSettings(corpus=documents))
    assert set(service.protocols) == {"cairn", "evidence"}
    assert service.agent.policy.name == "small-v1"


def test_the_package_says_which_model_it_belongs_to():
    assert (SMALL / "README.md").is_file()
    assert "SmolLM2-135M-Instruct" in (SMALL / "adapter_config.json").read_text(encoding="utf-8")
    assert sum(path.stat().st_size for path in SMALL.iterdir()) < 40_000_000


@pytest.mark.parametrize(("said", "used"), [(None, MOST_TOKENS), (2000, 2000)])
def test_it_writes_a_bounded_number_of_tokens_unless_a_setting_says_more(
    said: int | None, used: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def ready(*_: object, **__: object) -> Path:
        return tmp_path

    monkeypatch.setattr("agent.models.ready.ready_policy_folder", ready)
    settings = CairnSettings(world="", fetch=False, budgets=BudgetSettings(policy_tokens=said))
    assert with_policy(settings).budgets.policy_tokens == used


@pytest.mark.parametrize(("protocol", "poor"), [("cairn", False), ("multisearch", True), ("search-r1", False)])
def test_a_protocol_that_the_model_was_not_trained_on_is_said(protocol: str, poor: bool) -> None:
    said = notices(CairnSettings(checkpoint=SMALL, protocol=protocol))
    assert any("not on multisearch" in notice and "--protocol cairn" in notice for notice in said) == poor
