"""One question under every protocol and profile from the command line, on the little world, with a scripted policy."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.cli import run
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import profile_names, protocol_named, protocol_names
from agent.settings import CairnSettings
from agent.trace import Trace
from tests.agent.test_golden_protocols import FOREIGN, PLAIN_PROMPTS, protocol_of, script_of


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def script(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def build(settings: CairnSettings, *, sources: Sequence[str]) -> ScriptedPolicy:
        assert "documents" not in sources, "no policy reads of a source that it may not name"
        return ScriptedPolicy(script_of(protocol_of(name)))

    monkeypatch.setattr("agent.build.agent.build_policy", build)


def texts(name: str) -> dict[str, str]:
    plain = {"prompt": PLAIN_PROMPTS[name]} if name in PLAIN_PROMPTS else {}
    return {key: FOREIGN[key] for key in protocol_named(name).foreign} | plain


@pytest.mark.parametrize("name", [*protocol_names(), *profile_names()])
def test_one_question_is_answered_under_every_protocol(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    script(monkeypatch, name)
    given: list[str] = []
    if texts(name):
        (tmp_path / "texts.json").write_text(json.dumps(texts(name)), encoding="utf-8")
        given = ["--prompt-file", "texts.json"]
    assert run(["ask", "Who employs Kredel Portwick?", "--json", "--protocol", name, *given]) == 0
    trace = Trace.model_validate_json(capsys.readouterr().out)
    assert trace.protocol == name
    assert "Who employs Kredel Portwick?" in trace.segments[0].text
    assert (trace.answer or "").startswith("Frank ")


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_without_its_texts_says_where_upstream_keeps_them(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    script(monkeypatch, name)
    assert run(["ask", "Who employs Kredel Portwick?", "--protocol", name]) == 1
    printed = capsys.readouterr().err
    for word in (*protocol_named(name).foreign, "github.com/", "--prompt-file"):
        assert word in printed


def test_a_prompt_file_may_be_the_prompt_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    script(monkeypatch, "r1-searcher")
    (tmp_path / "prompt.txt").write_bytes(b"Made up.\r\nUser:{question}\nAssistant: <think>")
    arguments = [
        "ask",
        "Who employs Kredel Portwick?",
        "--json",
        "--protocol",
        "r1-searcher",
        "--prompt-file",
        "prompt.txt",
    ]
    assert run(arguments) == 0
    trace = Trace.model_validate_json(capsys.readouterr().out)
    assert trace.segments[0].text == "Made up.\r\nUser:Who employs Kredel Portwick?\nAssistant: <think>"


@pytest.mark.parametrize(
    ("file", "content", "protocol", "why"),
    [
        (
            "a.toml",
            'promt = "x"',
            "r1-searcher",
            "holds 'promt', which 'r1-searcher' does not need; did you mean 'prompt'",
        ),
        ("a.toml", "prompt = 3", "r1-searcher", "must hold text under 'prompt'"),
        ("a.toml", "prompt", "r1-searcher", "cannot be read"),
        ("a.json", "[]", "r1-searcher", "it is no JSON object"),
        ("a.txt", "x", "cairn", "'cairn' has all its texts; leave the prompt file out"),
        ("a.txt", "x", "search-r1", "needs text that is not ours to ship: 'invalid'"),
    ],
)
def test_a_prompt_file_that_cannot_be_used_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, content: str, protocol: str, why: str
):
    (tmp_path / file).write_text(content, encoding="utf-8")
    assert run(["ask", "Who?", "--protocol", protocol, "--prompt-file", file]) == 1
    assert why in capsys.readouterr().err
