import json
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.cli import make_app, run
from agent.errors import PolicyError
from agent.policies.scripted import Script, ScriptedPolicy
from agent.settings import CairnSettings

QUESTION = {"id": "q", "question": "Who directed Aurora Falls?", "answers": ["Lina Orr"], "supporting": ["d"]}


@pytest.fixture(autouse=True)
def some_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("questions.jsonl").write_text(json.dumps(QUESTION), encoding="utf-8")
    Path("documents.jsonl").write_text(json.dumps({"id": "d", "text": "Lina Orr directed Aurora Falls."}), "utf-8")
    assert run(["index", "build", "documents.jsonl", "--out", "index"]) == 0


def says(monkeypatch: pytest.MonkeyPatch, turns: Script) -> None:
    """Let the command build this policy."""

    def build(settings: CairnSettings, *, sources: Sequence[str]) -> ScriptedPolicy:
        return ScriptedPolicy(turns)

    monkeypatch.setattr("agent.build.agent.build_policy", build)


SEARCH_AND_ANSWER = ["<search>\nA: Aurora Falls (web)\n</search>", "<answer>Lina Orr</answer>"]
ARGUMENTS = ["eval", "--questions", "questions.jsonl", "--corpus", "index"]


def test_json_is_one_object_with_the_figures(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    says(monkeypatch, SEARCH_AND_ANSWER)
    capsys.readouterr()
    assert run([*ARGUMENTS, "--json"]) == 0
    captured = capsys.readouterr()
    figures = json.loads(captured.out)
    assert not captured.err
    assert (figures["n"], figures["em"], figures["f1"], figures["gold_found"]) == (1, 1.0, 1.0, 1.0)
    assert {"by_type", "by_hops", "searches", "policy_tokens", "seconds_p50", "seconds_p95"} <= figures.keys()


def test_a_person_gets_a_table_and_the_folder_its_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    says(monkeypatch, SEARCH_AND_ANSWER)
    assert run([*ARGUMENTS, "--protocol", "cairn", "--out", "run", "--concurrency", "2"]) == 0
    assert "questions.jsonl: cairn" in capsys.readouterr().out
    there = {path.name for path in Path("run").iterdir()}
    assert there == {"run.json", "results.jsonl", "traces.jsonl", "report.json", "report.md", "report.html"}


def test_failures_of_the_engine_are_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    says(monkeypatch, [PolicyError("no route to the model")])
    assert run(ARGUMENTS) == 1
    assert "no question could be scored; the last error: no route to the model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "why"),
    [
        (["--questions", "gone.jsonl"], 1, "the questions gone.jsonl cannot be read"),
        (["--corpus", "index"], 1, "name them with --questions FILE"),
        (["--world", "nowhere"], 1, "nowhere is no world"),
        (["--baseline", "guess"], 2, "closed-book"),
        (["--limit", "0"], 2, "--limit"),
    ],
)
def test_bad_input_is_a_sentence_and_a_status(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, why: str
):
    capsys.readouterr()
    assert run(["eval", *arguments]) == status
    captured = capsys.readouterr()
    assert why in " ".join(captured.err.replace("│", " ").split())
    assert not captured.out


JUDGE = ["--judge-model", "judge", "--judge-url"]


@pytest.mark.parametrize(
    ("url", "key"),
    [("http://judge.example/v1", "JUDGE_KEY"), ("http://user:pass-word@judge.example/v1", None)],
    ids=["a key", "a password"],
)
def test_a_judge_gets_a_key_unencrypted_on_this_machine_only_or_where_plain_http_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str, key: str | None
):
    monkeypatch.setenv("JUDGE_KEY", "s3cret")
    command = [*ARGUMENTS, *JUDGE, url, *(["--judge-key-env", key] if key else [])]
    capsys.readouterr()
    assert run(command) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "--judge-url is http://judge.example, and a key would be sent there unencrypted" in said
    assert "pass-word" not in said
    monkeypatch.setattr("train.evaluation.session.Evaluation.__init__", started)
    for allowed in (
        [*ARGUMENTS, *JUDGE, url.replace("http:", "https:"), *command[len(ARGUMENTS) + 4 :]],
        [*ARGUMENTS, *JUDGE, url.replace("judge.example", "127.0.0.1:9"), *command[len(ARGUMENTS) + 4 :]],
        [*ARGUMENTS, *JUDGE, "http://judge.example/v1"],
    ):
        with pytest.raises(Started):
            make_app()(allowed, prog_name="cairn")
    monkeypatch.setenv("CAIRN_PLAIN_HTTP", "judge.example")
    with pytest.raises(Started):
        make_app()(command, prog_name="cairn")


class Started(Exception):
    """The evaluation would begin now."""


def started(*_: object, **__: object) -> None:
    raise Started


def test_ctrl_c_keeps_what_was_scored(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def interrupt(context: str) -> str:
        signal.raise_signal(signal.SIGINT)
        return "<think>"

    says(monkeypatch, interrupt)
    assert run([*ARGUMENTS, "--out", "run"]) == 130
    assert "to continue, run the same command" in capsys.readouterr().err
