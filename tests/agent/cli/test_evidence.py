"""`cairn evidence`: what is printed, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from agent.errors import PolicyError
from agent.loop.agent import Agent
from agent.outbound.llm import LlmClient
from agent.policies.scripted import Script
from agent.rstool import EvidenceBundle
from agent.settings import CairnSettings
from agent.settings.user_file import write_user_file
from tests.conftest import ANSWER_TURN, PLAN_TURN, make_agent

NO_SERVER = "http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[CairnSettings]:
    """The settings that an agent was built from."""
    settings_of: list[CairnSettings] = []
    turns: Script = [PLAN_TURN, ANSWER_TURN]

    def build(settings: CairnSettings) -> Agent:
        settings_of.append(settings)
        return make_agent(turns)

    monkeypatch.setattr("agent.build.agent.build_agent", build)
    return settings_of


def test_the_evidence_is_printed_as_a_prompt_would_hold_it(
    built: list[CairnSettings], capsys: pytest.CaptureFixture[str]
):
    assert run(["evidence", "Who wrote Dune?"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Quotations from documents of strangers")
    assert "Claim 1: Frank Herbert wrote Dune. [1]" in printed


def test_json_is_the_bundle_and_nothing_else(built: list[CairnSettings], capsys: pytest.CaptureFixture[str]):
    assert run(["evidence", "Who wrote Dune?", "--json", "--max-chars", "700"]) == 0
    bundle = EvidenceBundle.model_validate_json(capsys.readouterr().out)
    assert bundle.size.max_chars == 700


def test_the_endpoint_of_the_other_model_does_not_become_the_policy(
    built: list[CairnSettings], capsys: pytest.CaptureFixture[str]
):
    assert run(["evidence", "q", "--json", "--answer-with", "small", "--base-url", NO_SERVER]) == 1
    assert built[0].policy == "embedded"
    captured = capsys.readouterr()
    downstream = json.loads(captured.out)["downstream"]
    assert (downstream["outcome"], downstream["ours"]) == ("failed", "Frank Herbert")
    assert "no server at http://127.0.0.1:1/v1" in captured.err


def test_a_policy_at_an_endpoint_and_another_model_elsewhere(built: list[CairnSettings]):
    wanted = [
        "--base-url",
        "http://127.0.0.1:2/v1",
        "--model",
        "big",
        "--answer-with",
        "small",
        "--answer-url",
        NO_SERVER,
    ]
    assert run(["evidence", "q", *wanted]) == 1
    assert (built[0].policy, built[0].model) == ("openai", "big")


@pytest.mark.parametrize("own", ["", "sk-answer"])
def test_the_key_of_the_policy_goes_to_no_other_address(
    built: list[CairnSettings], monkeypatch: pytest.MonkeyPatch, own: str
):
    sent: list[str] = []

    class Client(LlmClient):
        def __init__(self, *, api_key: str, **options: Any) -> None:
            sent.append(api_key)
            super().__init__(api_key=api_key, **options)

    monkeypatch.setattr("agent.outbound.llm.LlmClient", Client)
    monkeypatch.setenv("CAIRN_API_KEY", "sk-policy")
    monkeypatch.setenv("CAIRN_ANSWER_KEY", own)
    policy = ["--base-url", "http://127.0.0.1:2/v1", "--model", "big", "--answer-with", "small"]
    run(["evidence", "q", *policy, "--answer-url", NO_SERVER])
    run(["evidence", "q", *policy])
    assert sent == [own, "sk-policy"]


def test_the_other_models_address_may_be_a_setting_and_its_key_goes_to_no_other_one(
    built: list[CairnSettings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    sent: list[tuple[str, str]] = []

    class Client(LlmClient):
        def __init__(self, *, base_url: str, api_key: str, **options: Any) -> None:
            sent.append((base_url, api_key))
            super().__init__(base_url=NO_SERVER, api_key=api_key, **options)

    monkeypatch.setattr("agent.outbound.llm.LlmClient", Client)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_user_file({"answer_url": "https://mine.example/v1", "answer_key": "sk-mine"})
    run(["evidence", "q", "--answer-with", "small", "--answer-url", NO_SERVER])
    monkeypatch.setenv("CAIRN_ANSWER_URL", NO_SERVER)
    run(["evidence", "q", "--answer-with", "small"])
    assert sent == [(NO_SERVER, ""), (NO_SERVER, "")]
    monkeypatch.delenv("CAIRN_ANSWER_URL")
    run(["evidence", "q", "--answer-with", "small"])
    assert sent[-1] == ("https://mine.example/v1", "sk-mine")


def test_a_model_without_an_endpoint_is_a_wrong_call(built: list[CairnSettings], capsys: pytest.CaptureFixture[str]):
    assert run(["evidence", "q", "--answer-with", "small"]) == 2
    assert "--base-url" in capsys.readouterr().err


def test_an_honest_empty_find_is_said_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def build(settings: CairnSettings) -> Agent:
        return make_agent(["<answer>x</answer>"])

    monkeypatch.setattr("agent.build.agent.build_agent", build)
    assert run(["evidence", "q"]) == 0
    assert "Nothing was searched." in capsys.readouterr().err


def test_an_engine_that_fails_is_status_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def build(settings: CairnSettings) -> Agent:
        return make_agent([PolicyError("no one listens")])

    monkeypatch.setattr("agent.build.agent.build_agent", build)
    assert run(["evidence", "q"]) == 1
    assert "no one listens" in capsys.readouterr().err
