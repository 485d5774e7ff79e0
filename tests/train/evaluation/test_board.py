"""The whole command against agents that are not in this process: failures, a kill in the middle, and our own server."""

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from agent.cli import run
from agent.settings import load_settings
from server.launch import address_of, bind, make_server, make_service
from tests.train.evaluation.far import AgentRequest, FarAgent, Given, chat, far_agent
from train.evaluation.chosen import QuestionChoice
from train.evaluation.endpoint import EndpointOptions
from train.evaluation.session import Evaluation

MANY = 40
ROOT = Path(__file__).parents[3]
SECRET = "sk-very-secret-0123456789"


def number_of(request: AgentRequest) -> int:
    return int(request.question.removeprefix("What is number ").removesuffix("?"))


def right(request: AgentRequest) -> Given:
    return chat(f"<answer>{number_of(request)}</answer>")


@pytest.fixture(autouse=True)
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty questions, in a file of the current folder; the answer is the number."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"q{n}", "question": f"What is number {n}?", "answers": [str(n)], "hops": 1} for n in range(MANY)]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def arguments(agent: FarAgent, *more: str) -> list[str]:
    return [
        "eval",
        "--endpoint",
        agent.url,
        "--model",
        "m",
        *(() if "--questions" in more else ("--questions", "questions.jsonl")),
        *more,
    ]


def evaluated(agent: FarAgent, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run([*arguments(agent, *more), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def kept(folder: Path = Path("out")) -> list[dict[str, Any]]:
    """The whole lines: one that is being written is none yet."""
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def test_an_agent_is_measured_with_its_citations_tokens_and_traces_to_look_at(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("THEIR_KEY", SECRET)

    def says(request: AgentRequest) -> Given:
        wrong = number_of(request) % 4 == 0
        said = "I looked it up [1].\n<answer>" + ("no idea" if wrong else str(number_of(request))) + "</answer>"
        return chat(said, citations=["https://e.org/1"], usage={"completion_tokens": 8})

    with far_agent(says) as agent:
        figures = evaluated(agent, capsys, "--api-key-env", "THEIR_KEY", "--out", "out")
        assert all(request.headers["authorization"] == f"Bearer {SECRET}" for request in agent.requests)
    assert (figures["questions"], figures["n"], figures["em"], figures["policy_tokens"]) == (MANY, MANY, 0.75, 8)
    assert figures["settings"]["endpoint"] == agent.url
    assert all(result["citations"] == ["https://e.org/1"] for result in kept())
    traces = [json.loads(line) for line in Path("out/traces.jsonl").read_text("utf-8").splitlines()]
    assert {trace["id"] for trace in traces} == {result["trace"] for result in kept()}
    assert not any(SECRET in path.read_text("utf-8") for path in Path("out").iterdir())


def test_an_endpoint_that_fails_for_a_tenth_is_reported_so_and_nothing_of_it_counts_as_wrong(
    capsys: pytest.CaptureFixture[str],
):
    def says(request: AgentRequest) -> Given:
        if number_of(request) % 10 == 3:
            return Given({"error": {"message": "out of memory"}}, status=500)
        return right(request) if number_of(request) % 2 else chat("something else")

    with far_agent(says) as agent:
        figures = evaluated(agent, capsys, "--out", "out", "--tries", "1")
    assert (figures["questions"], figures["n"], figures["infrastructure"]) == (40, 36, 4)
    assert figures["failures"] == {"server": 4}
    assert figures["em"] == pytest.approx(16 / 36, abs=1e-4)
    assert figures["em_strict"] == pytest.approx(16 / 40, abs=1e-4)
    failed = [result for result in kept() if result["status"] == "failed"]
    assert {result["id"] for result in failed} == {"q3", "q13", "q23", "q33"}
    assert all("out of memory" in result["detail"] and result["metrics"] == {} for result in failed)
    assert "the server failed (5xx)" in Path("out/report.md").read_text("utf-8")


def test_failures_are_printed_with_how_to_run_them_again(capsys: pytest.CaptureFixture[str]):
    def says(request: AgentRequest) -> Given:
        return Given("busy", status=503) if number_of(request) == 3 and request.times == 1 else right(request)

    with far_agent(says) as agent:
        assert run(arguments(agent, "--out", "out", "--tries", "1")) == 0
        assert (
            "1 of 40 questions failed and are not scored, not even as wrong; to repeat them" in capsys.readouterr().err
        )
        evaluated(agent, capsys, "--out", "out")
        assert len(agent.requests) == MANY
        figures = evaluated(agent, capsys, "--out", "out", "--retry-failed")
        assert len(agent.requests) == MANY + 1
    assert (figures["n"], figures["infrastructure"], figures["em"]) == (MANY, 0, 1.0)


def test_too_many_failures_stop_the_run_and_what_ended_is_kept(capsys: pytest.CaptureFixture[str]):
    def says(request: AgentRequest) -> Given:
        return right(request) if number_of(request) < 5 else Given("gone", status=503)

    with far_agent(says) as agent:
        status = run(arguments(agent, "--out", "out", "--tries", "1", "--concurrency", "1", "--max-failed", "0.4"))
        assert status == 1
        said = capsys.readouterr().err
        assert "4 of the first 9 questions failed (4: the server failed (5xx), also after retries)" in said
        assert "at most 40% may" in said
        assert "to continue, run the same command with --retry-failed" in said
        assert len(kept()) == len(agent.requests) == 9
        assert json.loads(Path("out/report.json").read_text("utf-8"))["n"] == 5
        agent.says = right
        figures = evaluated(agent, capsys, "--out", "out", "--retry-failed")
    assert (figures["n"], figures["em"]) == (MANY, 1.0)
    assert agent.answered == Counter({f"What is number {n}?": 1 for n in range(MANY)})


class Holding:
    """Answers a number of questions, then keeps all others waiting until it is let go."""

    def __init__(self, answers: int) -> None:
        self._left = threading.Semaphore(answers)
        self.let_go = threading.Event()

    def __call__(self, request: AgentRequest) -> Given:
        if not self._left.acquire(blocking=False):
            self.let_go.wait(30)
            return Given("too late", status=503)
        return right(request)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_evaluation_goes_on_and_asks_nothing_twice_that_was_answered(
    ending: signal.Signals, questions: Path, capsys: pytest.CaptureFixture[str]
):
    holding = Holding(answers=17)
    with far_agent(holding) as agent:
        more = ("--questions", str(questions), "--out", str(Path("out").absolute()), "--concurrency", "3", "--json")
        command = [sys.executable, "-m", "agent.cli", *arguments(agent, *more)]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
        try:
            _wait_for(lambda: Path("out/results.jsonl").exists() and len(kept()) == 17 and len(agent.requests) == 20)
            process.send_signal(ending)
            said = process.communicate(timeout=20)[1].decode()
        finally:
            process.kill()
        assert process.returncode == (-signal.SIGKILL if ending is signal.SIGKILL else 130)
        assert ("to continue, run the same command" in said) is (ending is signal.SIGINT)
        held = {request.question for request in agent.requests} - set(agent.answered)
        holding.let_go.set()
        with Path("out/results.jsonl").open("ab") as results:
            results.write(b'{"id": "q39", "question": "What')  # as a power cut leaves it
        agent.says = right
        figures = evaluated(agent, capsys, "--out", "out", "--concurrency", "3")
    assert (figures["questions"], figures["n"], figures["em"]) == (MANY, MANY, 1.0)
    assert agent.answered == Counter({f"What is number {n}?": 1 for n in range(MANY)})
    assert len(held) == 3
    assert {q for q, times in Counter(request.question for request in agent.requests).items() if times > 1} == held
    assert sorted(result["id"] for result in kept()) == sorted(f"q{n}" for n in range(MANY))


def _wait_for(holds: Any) -> None:
    until = monotonic() + 30
    while not holds():
        assert monotonic() < until, "it never came so far"
        sleep(0.01)


def test_the_same_figures_come_out_however_many_run_at_once(capsys: pytest.CaptureFixture[str]):
    def says(request: AgentRequest) -> Given:
        return right(request) if number_of(request) % 3 else chat("no")

    with far_agent(says) as agent:
        one, many = (evaluated(agent, capsys, "--concurrency", n, "--out", f"out{n}") for n in ("1", "20"))
    assert (one["em"], one["f1"], one["em_interval"]) == (many["em"], many["f1"], many["em_interval"])
    first, second = ({r["id"]: _untimed(r) for r in kept(Path(name))} for name in ("out1", "out20"))
    assert first == second


def _untimed(result: dict[str, Any]) -> dict[str, Any]:
    measured = {name: value for name, value in result["metrics"].items() if name not in ("seconds", "first_token")}
    return {**result, "trace": "", "metrics": measured}


def test_another_agent_or_interface_is_another_run(capsys: pytest.CaptureFixture[str]):
    with far_agent(right) as agent:
        evaluated(agent, capsys, "--out", "out", "--limit", "3")
        for more, why in ((["--plain"], "a run with instruction ="), (["--api", "responses"], "a run with api = chat")):
            assert run(arguments(agent, "--out", "out", *more)) == 1
            assert why in capsys.readouterr().err
        assert len(agent.requests) == 3


def test_options_of_our_own_agent_are_refused_beside_an_endpoint(capsys: pytest.CaptureFixture[str]):
    with far_agent(right) as agent:
        assert run(arguments(agent, "--protocol", "cairn", "--policy", "embedded")) == 2
        said = " ".join(capsys.readouterr().err.replace("│", " ").split())
        assert "--policy, --protocol would change the agent in this process" in said
        assert run(arguments(agent, "--baseline", "closed-book")) == 1
        assert "leave out --baseline" in capsys.readouterr().err
        assert run(arguments(agent, "--api-key-env", "NOT_SET_ANYWHERE")) == 1
        assert "the environment variable 'NOT_SET_ANYWHERE' is empty" in capsys.readouterr().err
        assert agent.requests == []


@pytest.fixture(scope="module")
def own_server() -> Generator[str]:
    """`cairn serve --world test-v2`, in a thread."""
    listener = bind("127.0.0.1", 0)
    server = make_server(make_service(load_settings(world="test-v2")), None)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield address_of(listener)
    server.should_exit = True
    thread.join(20)


OF_WORLD = QuestionChoice(limit=8, sample=4)


@pytest.fixture(scope="module")
def near() -> dict[str, Any]:
    """What the agent in this process scores."""
    return Evaluation(load_settings(world="test-v2"), choice=OF_WORLD).run()


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False])
def test_our_own_server_scores_what_the_agent_in_this_process_scores(
    own_server: str, near: dict[str, Any], stream: bool
):
    where = EndpointOptions(url=f"{own_server}/v1", model="cairn", stream=stream)
    far = Evaluation(load_settings(world="test-v2"), choice=OF_WORLD, endpoint=where).run()
    same = ("questions", "n", "em", "em_interval", "f1", "cover", "searches", "policy_tokens")
    assert {name: far[name] for name in same} == {name: near[name] for name in same}
    by_type = [{kind: group["em"] for kind, group in figures["by_type"].items()} for figures in (far, near)]
    assert by_type[0] == by_type[1]
    assert near["em"] > 0.8
    for name in ("citations", "citation_precision", "citation_recall"):
        assert far["metrics"][name]["mean"] == near["metrics"][name]["mean"] > 0
