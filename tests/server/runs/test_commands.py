import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from agent.trace import Answered, Step, Stopped, Thought, Trace
from server.http.encoding import dumped
from server.runs.commands import trace_app
from server.store import NewRun, RunStore
from server.store.database import Database


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three runs."""
    path = tmp_path / "runs.sqlite"

    async def fill() -> None:
        opened = RunStore(Database(str(path)))
        for id, question in (
            ("aa1", "Who wrote Dune?"),
            ("aa2", "Who wrote\x1b[31m Emma?"),
            ("b", "Where is Trieste?"),
        ):
            steps: list[Step] = [
                Thought(text="Hm.", seconds=0.1),
                Answered(text="So.", seconds=0.2),
                Stopped(reason="answered"),
            ]
            trace = Trace(id=id, question=question, protocol="cairn", policy="p", steps=steps)
            await opened.writes.keep([(NewRun(trace=trace, model="cairn"), dumped(trace))])
        await opened.aclose()

    asyncio.run(fill())
    return path


def cairn(*arguments: object) -> Result:
    return CliRunner().invoke(trace_app, [str(argument) for argument in arguments])


def test_runs_are_listed_and_searched(store: Path):
    listed = cairn("list", "--store", store)
    assert listed.exit_code == 0, listed.output
    assert [line.split()[0] for line in listed.output.splitlines()] == ["b", "aa2", "aa1"]
    assert "\x1b" not in listed.output
    found = json.loads(cairn("list", "--store", store, "--search", "dun", "--json").output)
    assert [(run["id"], run["answer"]) for run in found["runs"]] == [("aa1", "So.")]


def test_a_run_is_shown_by_its_id_its_beginning_or_as_the_last(store: Path):
    for id, question in (("b", "Trieste"), ("aa1", "Dune"), ("last", "Trieste")):
        trace = Trace.model_validate_json(cairn("show", id, "--store", store, "--json").output)
        assert question in trace.question
    drawn = cairn("show", "b", "--store", store)
    assert drawn.output.splitlines()[:2] == ["Hm.", "Answer: So."]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("show", "nothing"), "there is no run 'nothing'"),
        (("show", "aa"), "several runs start with 'aa'"),
        (("export", "b", "--format", "pdf"), "there is no format 'pdf'"),
    ],
)
def test_what_cannot_be_found_is_said_in_a_sentence(store: Path, arguments: tuple[str, ...], sentence: str):
    said = cairn(*arguments, "--store", store)
    assert said.exit_code != 0
    assert sentence in f"{said.output} {said.exception}"


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path):
    said = cairn("list", "--store", tmp_path / "none.sqlite")
    assert "there is no store at" in f"{said.output} {said.exception}"
    assert not (tmp_path / "none.sqlite").exists()


def test_a_replay_has_every_step_in_order_and_is_as_fast_as_one_says(store: Path):
    replayed = json.loads(cairn("replay", "b", "--store", store, "--speed", "100", "--json").output)
    assert [step["kind"] for step in replayed["steps"]] == ["stopped", "thought", "answered"]
    drawn = cairn("replay", "b", "--store", store, "--speed", "0")
    assert "Answer: So." in drawn.output


def test_an_export_goes_to_a_file_or_to_standard_output(store: Path, tmp_path: Path):
    assert cairn("export", "b", "--store", store, "--format", "markdown").output.startswith("# Where is Trieste?")
    cairn("export", "b", "--store", store, "--format", "html", "--out", tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text(encoding="utf-8").startswith("<!doctype html>")
