"""A judge, another normalisation and a published form, from the command to the figures."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from agent.outbound.retries import BATCH
from tests.train.evaluation.far import AgentRequest, FarAgent, Given, chat, far_agent

ROWS = [
    {"id": "q0", "question": "Who wrote it?", "answers": ["Jay Z"], "hops": 1},
    {"id": "q1", "question": "Who sang it?", "answers": ["Jay Z"], "hops": 1},
    {"id": "q2", "question": "Who broke it?", "answers": ["Jay Z"], "hops": 1},
]
SAID = {"Who wrote it?": "Jay-Z", "Who sang it?": "The man called Jay-Z", "Who broke it?": "No one"}


@pytest.fixture(autouse=True)
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")


def says(request: AgentRequest) -> Given:
    return chat(SAID[request.question])


def evaluated(agent: FarAgent, capsys: pytest.CaptureFixture[str], *more: str, status: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    arguments = ["eval", "--endpoint", agent.url, "--model", "m", "--questions", "questions.jsonl", "--json"]
    assert run([*arguments, *more]) == status
    return json.loads(capsys.readouterr().out or "{}")


def test_the_normalisation_that_is_named_comes_first(capsys: pytest.CaptureFixture[str]):
    with far_agent(says) as agent:
        usual = evaluated(agent, capsys)
        other = evaluated(agent, capsys, "--normalisation", "triviaqa")
    assert (usual["normalisation"], usual["em"], usual["cover"]) == ("squad", 0.0, 0.0)
    assert (other["normalisation"], other["em"], other["cover"]) == ("triviaqa", 0.3333, 0.6667)


def judging(request: AgentRequest) -> Given:
    """Holds it right where the name is in the answer, and has nothing to say where there is none."""
    said = json.loads(request.question)["answer_to_grade"]
    return chat("well" if said == "No one" else "correct" if said in ("four", "Jay-Z") else "incorrect")


def test_a_judge_says_what_it_holds_right_and_what_it_did_not_judge(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("JUDGE_KEY", "sk-judge-0123456789")
    monkeypatch.setattr("train.evaluation.judge.BATCH", replace(BATCH, first_wait=0.0))
    with far_agent(says) as agent, far_agent(judging) as judge:
        more = ("--judge-url", judge.url, "--judge-model", "j", "--judge-key-env", "JUDGE_KEY", "--out", "out")
        figures = evaluated(agent, capsys, *more)
        assert all(request.headers["authorization"] == "Bearer sk-judge-0123456789" for request in judge.requests)
        before = len(judge.requests)
        again = evaluated(agent, capsys, *more)
        assert again["metrics"]["judged"] == figures["metrics"]["judged"]
        assert again["judge_failures"] == figures["judge_failures"]
        assert len(judge.requests) == before, "what is judged is not judged again"
    assert (figures["metrics"]["judged"]["mean"], figures["metrics"]["judged"]["n"]) == (0.5, 2)
    assert sum(figures["judge_failures"].values()) == 1
    assert json.loads(Path("out/run.json").read_text("utf-8"))["judge"] == f"j at {judge.url}"


def test_what_failed_is_not_judged(capsys: pytest.CaptureFixture[str]):
    def fails(request: AgentRequest) -> Given:
        return Given({}, status=400) if "sang" in request.question else says(request)

    with far_agent(fails) as agent, far_agent(lambda request: chat("correct")) as judge:
        figures = evaluated(agent, capsys, "--judge-url", judge.url, "--judge-model", "j", "--out", "out")
        assert len(judge.requests) == 3, "one to see whether it can be used, and two answers"
    assert (figures["infrastructure"], figures["metrics"]["judged"]["n"]) == (1, 2)
    results = map(json.loads, Path("out/results.jsonl").read_text("utf-8").splitlines())
    assert [result["metrics"] for result in results if result["status"] == "failed"] == [{}]


def test_a_judge_that_cannot_be_used_is_said_before_anything_is_requested(capsys: pytest.CaptureFixture[str]):
    with far_agent(says) as agent, far_agent(lambda request: Given({}, status=404)) as judge:
        evaluated(agent, capsys, "--judge-url", judge.url, "--judge-model", "j", status=1)
        assert agent.requests == []


@pytest.mark.parametrize(
    ("more", "status", "why"),
    [
        (["--judge-model", "j"], 2, "a judge needs an endpoint"),
        (["--judge-url", "http://127.0.0.1:9/v1"], 1, "name the judge's model"),
        (["--dataset", "hotpotqa"], 1, "questions.jsonl"),
        (["--types", "chain"], 1, "its questions have no types"),
    ],
)
def test_what_does_not_fit_is_a_sentence(more: list[str], status: int, why: str, capsys: pytest.CaptureFixture[str]):
    with far_agent(says) as agent:
        arguments = ["eval", "--endpoint", agent.url, "--model", "m", "--questions", "questions.jsonl"]
        assert run([*arguments, *more]) == status
        assert why in " ".join(capsys.readouterr().err.replace("│", " ").split())
        assert agent.requests == []


def test_a_published_form_is_recognised_and_its_name_may_be_said(capsys: pytest.CaptureFixture[str]):
    published = [
        {
            "_id": "h0",
            "question": "Who wrote it?",
            "answer": "Jay-Z",
            "type": "bridge",
            "level": "easy",
            "supporting_facts": [["It", 0]],
            "context": [["It", ["Jay-Z wrote it."]]],
        }
    ]
    Path("questions.jsonl").write_text(json.dumps(published), encoding="utf-8")
    with far_agent(says) as agent:
        for more in ((), ("--dataset", "hotpotqa")):
            figures = evaluated(agent, capsys, *more)
            assert (figures["n"], figures["em"], list(figures["by_type"])) == (1, 1.0, ["bridge"])
