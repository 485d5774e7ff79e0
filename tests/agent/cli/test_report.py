import asyncio
import io
import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import pypdf
import pytest
from docx import Document

from agent.cli import run
from agent.errors import PolicyError
from agent.loop.agent import Agent
from agent.report import Report, unsupported
from agent.settings import CairnSettings
from agent.sources.base import SearchRequest, SearchResult
from tests.agent.report.library import QUESTION, Library, agent_of, researcher
from tests.docs.stand_in import stand_in

RIGHT = "Lina Orr was born in Trieste in 1931. [1][2][3]"


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def install(monkeypatch: pytest.MonkeyPatch, agent: Agent | None = None) -> None:
    """Let the command build this agent."""

    def build(settings: CairnSettings) -> Agent:
        return agent or agent_of(researcher(RIGHT))

    monkeypatch.setattr("agent.build.agent.build_agent", build)


def test_without_a_file_the_report_is_markdown_on_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    install(monkeypatch)
    assert run(["report", QUESTION, "--sections", "3"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"# {QUESTION}\n")
    assert "Lina Orr was born in Trieste in 1931." in printed.out
    assert "## Sources" in printed.out
    assert "\x1b" not in printed.out


def test_progress_is_on_standard_error_with_what_is_used_of_the_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    install(monkeypatch)
    assert run(["report", QUESTION, "--section", "Lina Orr", "--searches", "9", "--tokens", "5000"]) == 0
    said = capsys.readouterr().err
    assert "Lina Orr: " in said
    assert "2 of 9 searches" in said
    assert "of 5,000 tokens" in said


@pytest.mark.parametrize("ending", ["md", "html", "docx", "pdf", "json"])
def test_the_file_has_the_format_of_its_ending(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, ending: str
):
    install(monkeypatch)
    out = tmp_path / f"report.{ending}"
    assert run(["report", QUESTION, "--out", str(out)]) == 0
    data = out.read_bytes()
    match ending:
        case "docx":
            assert any("Trieste" in paragraph.text for paragraph in Document(io.BytesIO(data)).paragraphs)
        case "pdf":
            assert "Trieste" in pypdf.PdfReader(io.BytesIO(data)).pages[0].extract_text()
        case _:
            assert b"Trieste" in data
    printed = capsys.readouterr()
    assert printed.out == ""
    assert str(out) in printed.err


def test_json_is_the_whole_report_and_can_be_checked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    install(monkeypatch)
    assert run(["report", QUESTION, "--json"]) == 0
    report = Report.model_validate(json.loads(capsys.readouterr().out))
    assert report.sentences
    assert unsupported(report) == []


@pytest.mark.parametrize("name", ["report.odt", "nowhere/report.md"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_researched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
):
    library = Library()
    install(monkeypatch, agent_of(researcher(RIGHT), source=library))
    assert run(["report", QUESTION, "--out", name]) == 1
    assert library.searches == 0
    assert "cairn: " in capsys.readouterr().err


def test_a_report_that_says_nothing_ends_with_1_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    install(monkeypatch, agent_of([PolicyError("no one listens")]))
    assert run(["report", QUESTION]) == 1
    assert "the report says nothing: no one listens" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[""], [QUESTION, "--sections", "0"], [QUESTION, "--sections", "13"], [QUESTION, "--seconds", "0"]]
)
def test_a_wrong_call_ends_with_2(monkeypatch: pytest.MonkeyPatch, arguments: list[str]):
    install(monkeypatch)
    assert run(["report", *arguments]) == 2


def test_a_model_at_an_endpoint_searches_and_writes_and_nothing_unsupported_is_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    (tmp_path / "orr.md").write_text("# Lina Orr\n\nLina Orr is a director of films. She was born in Trieste.\n")
    with stand_in() as address:
        model = ["--base-url", f"{address}/v1", "--model", "qwen3:8b"]
        assert run(["report", "Who is Lina Orr?", "--corpus", str(tmp_path), *model, "--json"]) == 0
    report = Report.model_validate(json.loads(capsys.readouterr().out))
    assert report.policy == "qwen3:8b"
    assert report.sentences
    assert unsupported(report) == []


def test_the_help_shows_examples_and_the_budget(capsys: pytest.CaptureFixture[str]):
    assert run(["report", "--help"]) == 0
    said = capsys.readouterr().out
    for part in ("--section", "--searches", "--out", "supported by the sources", "Examples"):
        assert part in said


@dataclass
class InterruptedLibrary:
    """In its search number `at` the user presses Ctrl-C; with `again`, another time while that search is cancelled."""

    at: int
    again: bool = False
    library: Library = field(default_factory=Library)
    pressed: bool = False

    async def search(self, request: SearchRequest) -> SearchResult:
        found = await self.library.search(request)
        if self.library.searches >= self.at:
            if not self.pressed:  # sections search at the same time
                self.pressed = True
                os.kill(os.getpid(), signal.SIGINT)
            try:
                await asyncio.sleep(60)
            finally:
                if self.again:
                    os.kill(os.getpid(), signal.SIGINT)
        return found


def test_ctrl_c_has_the_report_written_with_what_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    install(monkeypatch, agent_of(researcher(RIGHT), source=InterruptedLibrary(at=6)))
    headings = [f"--section=Lina Orr {number}" for number in range(12)]  # at most eight of them have begun by then
    assert run(["report", QUESTION, *headings, "--json"]) == 0
    printed = capsys.readouterr()
    made = Report.model_validate_json(printed.out)
    assert (made.state, made.sections[0].state, made.sections[-1].state) == ("cut", "researched", "left_out")
    assert "Lina Orr was born in Trieste in 1931." in [sentence.text for sentence in made.sentences]
    assert "Ctrl-C again ends without it" in printed.err


def test_a_second_ctrl_c_ends_without_a_report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    install(monkeypatch, agent_of(researcher(RIGHT), source=InterruptedLibrary(at=2, again=True)))
    assert run(["report", QUESTION, "--section", "Lina Orr", "--json"]) == 130
    assert capsys.readouterr().out == ""


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_searched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    library = Library()
    install(monkeypatch, agent_of(researcher(RIGHT), source=library))
    (tmp_path / "folder.md").mkdir()
    assert run(["report", QUESTION, "--out", str(tmp_path / "folder.md")]) == 1
    assert (library.searches, "name another file" in capsys.readouterr().err) == (0, True)


def test_a_report_whose_file_could_not_be_written_after_all_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    install(monkeypatch)

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert run(["report", QUESTION, "--out", str(tmp_path / "report.md")]) == 1
    printed = capsys.readouterr()
    assert "Lina Orr was born in Trieste in 1931." in printed.out
    assert "No space left on device" in printed.err
