import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agent.errors import SetupError
from agent.policies.base import Policy
from agent.policies.scripted import ScriptedPolicy
from lab.benchmarks.engines import Difference, EngineFigures, first_difference, measure
from tests.agent.policies.engine_case import CAIRN, ONE_HOP, TWO_HOPS, say
from tests.conftest import ANSWER_TURN, PLAN_TURN, Echo, answer

SOURCES = {name: Echo(name) for name in ("web", "news", "kg")}


def slips(context: str) -> str:
    """Says the same, but for the last word of one question."""
    return say(context).replace("Lurnia</answer>", "Lornia</answer>") if TWO_HOPS in context else say(context)


def test_engines_are_compared_id_by_id_and_the_first_difference_is_reported():
    engines: dict[str, Callable[[], Policy]] = {
        "one": lambda: ScriptedPolicy(say),
        "other": lambda: ScriptedPolicy(slips),
    }
    done: list[int] = []
    questions = [(ONE_HOP, ["Lurnia"]), (TWO_HOPS, ["Lurnia"])]
    measured = measure(engines, questions=questions, protocol=CAIRN, sources=SOURCES, at_once=1, progress=done.append)
    one, other = asyncio.run(listed(measured))
    assert (one.em, one.equal, one.furthest, one.first_difference) == (1.0, 1.0, 0.0, None)
    assert (other.em, other.equal, other.n) == (0.5, 0.5, 2)
    assert other.first_difference == Difference(TWO_HOPS, "ornia</answer>", "urnia</answer>")
    assert done == [1, 2, 3, 4]


async def listed(figures: AsyncIterator[EngineFigures]) -> list[EngineFigures]:
    return [one async for one in figures]


def test_what_was_measured_is_printed_when_a_later_engine_does_not_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from agent.cli import run

    def broken() -> Policy:
        raise SetupError("no memory for it")

    def engines(model: object, *, float32: bool, vllm: bool) -> dict[str, Callable[[], Policy]]:
        return {"one": lambda: ScriptedPolicy(say), "two": broken}

    monkeypatch.setattr("lab.cli.engines._engines", engines)
    assert run(["bench", "engines", "--limit", "1", "--json"]) == 1
    found = capsys.readouterr()
    assert [one["engine"] for one in json.loads(found.out)["engines"]] == ["one"]
    assert "no memory for it" in found.err


def test_a_list_of_questions_is_answered_from_its_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from agent.cli import run

    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "dune.md").write_text("# Dune\n\nDune is a novel by Frank Herbert.\n", encoding="utf-8")
    line = {"id": "a", "question": "Who wrote Dune?", "answers": ["Frank Herbert"]}
    (tmp_path / "q.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    arguments = ["bench", "engines", "--questions", str(tmp_path / "q.jsonl")]
    assert run(arguments) == 1
    assert "name --questions FILE and --corpus DIR together" in capsys.readouterr().err
    assert run([*arguments, "--corpus", str(tmp_path / "documents"), "--json"]) == 0
    assert {one["n"] for one in json.loads(capsys.readouterr().out)["engines"]} == {1}


@pytest.mark.parametrize("field", ["ids", "by"])
def test_a_segment_that_differs_in_what_it_is_made_of_is_a_difference(field: str):
    trace = answer([PLAN_TURN, ANSWER_TURN])
    assert first_difference(trace, trace) is None
    change = {"ids": (1,)} if field == "ids" else {"by": "loop"}
    changed = trace.model_copy(
        update={"segments": [*trace.segments[:-1], trace.segments[-1].model_copy(update=change)]}
    )
    assert first_difference(trace, changed) == Difference(trace.question, "", "")


def test_a_rollout_that_stopped_earlier_is_a_difference():
    trace = answer([PLAN_TURN, ANSWER_TURN])
    shorter = trace.model_copy(update={"segments": trace.segments[:-1]})
    assert first_difference(shorter, trace) is not None
