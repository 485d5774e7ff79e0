"""The recorded runs that the page's own tests read are runs: their events fold into the trace that they end with."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.protocols import protocol_named
from agent.trace import Trace
from server.runs.following import StreamPosition
from tests.invariants import violations
from tests.server.runs.replicas import Folded, Seen
from tests.web.record import CASES, FOLDER

Line = dict[str, Any]


def lines_of(name: str) -> list[Line]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def without_segments(steps: list[Line]) -> list[Line]:
    """Steps as they are sent: a branch is written onto the trace when its round has ended."""
    return [step | {"segments": []} for step in steps]


def test_every_recorded_run_is_of_a_case() -> None:
    assert {path.stem for path in Path(FOLDER).glob("*.jsonl")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_events_of_a_recorded_run_fold_into_its_trace(name: str) -> None:
    *events, run = lines_of(name)
    reader = Folded()
    for event in events:
        reader.take(Seen(event["id"], event["event"], event["data"]))
    trace = Trace.model_validate(run["data"]["trace"])
    sent = sorted(run["data"]["trace"]["steps"], key=lambda step: step["seconds"])
    assert reader.over
    assert without_segments(reader.steps) == without_segments(sent)
    assert StreamPosition.of(reader.last).steps == len(trace.steps)


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_run_agrees_with_itself(name: str) -> None:
    trace = Trace.model_validate(lines_of(name)[-1]["data"]["trace"])
    if name != "cairn-outside":  # the product answered; no rollout ran
        assert not violations(trace, protocol_named(trace.protocol), decode=None)
