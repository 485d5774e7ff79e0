import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli import run
from agent.errors import PolicyError
from agent.loop.agent import Agent
from agent.policies.scripted import Script, ScriptedPolicy
from agent.settings import CairnSettings
from agent.trace import Trace
from tests.conftest import ANSWER_TURN, PLAN_TURN, Broken, Echo, make_agent


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def install(monkeypatch: pytest.MonkeyPatch, agent: Agent) -> None:
    """Let the command build this agent."""

    def build(settings: CairnSettings) -> Agent:
        return agent

    monkeypatch.setattr("agent.build.agent.build_agent", build)


def test_the_steps_and_the_answer_are_printed_as_plain_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    install(monkeypatch, make_agent([PLAN_TURN, ANSWER_TURN]))
    assert run(["ask", "Who wrote Dune?"]) == 0
    printed = capsys.readouterr().out
    for line in (
        "Two things.",
        "✓ A: who wrote Dune (web)  1 found",
        "✓ B: when was Dune published (news)  1 found",
        "[1] web · who wrote Dune — All about who wrote Dune.",
        "• Frank Herbert wrote Dune. [1]",
        "Answer: Frank Herbert",
    ):
        assert line in printed
    assert "\x1b" not in printed
    assert printed.splitlines()[-1].startswith("answered · 1 round · 2 searches")


def test_where_and_in_which_numbers_a_model_runs_are_flags(monkeypatch: pytest.MonkeyPatch):
    heard: list[CairnSettings] = []

    def build(settings: CairnSettings) -> Agent:
        heard.append(settings)
        return make_agent(["<answer>x</answer>"])

    monkeypatch.setattr("agent.build.agent.build_agent", build)
    arguments = ["ask", "q", "--json", "--policy", "transformers", "--model", "m"]
    assert run([*arguments, "--device", "cuda:1", "--dtype", "float32"]) == 0
    assert (heard[0].device, heard[0].dtype) == ("cuda:1", "float32")


def test_numbers_that_there_are_not_are_refused(capsys: pytest.CaptureFixture[str]):
    assert run(["ask", "q", "--dtype", "float3"]) == 1
    assert "'dtype' cannot be used: Input should be 'auto', 'float32' or 'bfloat16'" in capsys.readouterr().err


def test_json_is_the_whole_trace_and_nothing_else(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    install(monkeypatch, make_agent([PLAN_TURN, ANSWER_TURN]))
    assert run(["ask", "Who wrote Dune?", "--json"]) == 0
    trace = Trace.model_validate_json(capsys.readouterr().out)
    assert trace.answer == "Frank Herbert"
    assert [passage.number for passage in trace.passages] == [1, 2]


def test_a_notice_goes_to_standard_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    install(monkeypatch, make_agent(["<answer>x</answer>"]))
    assert run(["ask", "q", "--json"]) == 0
    captured = capsys.readouterr()
    json.loads(captured.out)
    assert "little world" in captured.err


@pytest.mark.parametrize("question", ["", "   ", "x" * 20_001])
def test_an_empty_or_endless_question_is_a_wrong_call(question: str, capsys: pytest.CaptureFixture[str]):
    assert run(["ask", question]) == 2
    assert "the question" in capsys.readouterr().err


def test_a_failed_search_is_reported_and_the_answer_comes_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    sources = {"web": Echo(), "news": Broken(), "all": Echo("all")}
    install(monkeypatch, make_agent([PLAN_TURN, ANSWER_TURN], sources=sources))
    assert run(["ask", "Who wrote Dune?"]) == 0
    assert "✗ B: when was Dune published (news)  upstream: no route" in capsys.readouterr().out


def test_an_engine_that_fails_leaves_no_answer_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    turns: Script = [PolicyError("no one listens at http://127.0.0.1:1/v1")]
    install(monkeypatch, make_agent(turns))
    assert run(["ask", "Who wrote Dune?"]) == 1
    assert "cairn: no answer: no one listens at http://127.0.0.1:1/v1" in capsys.readouterr().err


def test_a_missing_corpus_is_a_sentence(capsys: pytest.CaptureFixture[str]):
    endpoint = ["--base-url", "http://127.0.0.1:1/v1", "--model", "m"]
    assert run(["ask", "q", "--corpus", "nowhere", *endpoint]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("cairn: ")
    assert "nowhere" in printed


def test_an_unknown_setting_is_a_sentence(capsys: pytest.CaptureFixture[str]):
    Path("cairn.toml").write_text("colour = 1", encoding="utf-8")
    assert run(["ask", "q"]) == 1
    assert "there is no setting 'colour'" in capsys.readouterr().err


ENDLESS = """
import sys
import agent.build.agent
from agent.cli import run
from tests.conftest import PLAN_TURN, Hanging, make_agent

class Announced(Hanging):
    async def search(self, request):
        sys.stderr.write("searching\\n")
        sys.stderr.flush()
        return await super().search(request)

agent.build.agent.build_agent = lambda settings: make_agent([PLAN_TURN], sources={n: Announced() for n in ("web", "news", "all")})
sys.exit(run(["ask", "Who wrote Dune?"]))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are sent in another way there")
def test_ctrl_c_ends_a_rollout_that_waits_without_a_traceback():
    root = Path(__file__).parents[3]
    command = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert command.stderr is not None
    while command.stderr.readline() != "searching\n":
        assert command.poll() is None, "it ended before it searched"
    command.send_signal(signal.SIGINT)
    _, printed = command.communicate(timeout=20)
    assert command.returncode == 130
    assert "Traceback" not in printed


def test_the_policy_is_closed_after_the_rollout(monkeypatch: pytest.MonkeyPatch):
    closed: list[bool] = []

    class Closing(ScriptedPolicy):
        async def aclose(self) -> None:
            await asyncio.sleep(0)
            closed.append(True)

    agent = make_agent([])
    install(monkeypatch, Agent(Closing(["<answer>x</answer>"]), agent.protocol, agent.sources))
    assert run(["ask", "q"]) == 0
    assert closed == [True]


def test_a_question_that_is_not_utf_8_is_a_wrong_call(capsys: pytest.CaptureFixture[str]):
    assert run(["ask", "\udcff who is it"]) == 2
    assert "the question is not UTF-8" in capsys.readouterr().err
