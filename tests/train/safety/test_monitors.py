import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agent.errors import SetupError
from tests.train.safety.test_figures import BROKEN, NOWHERE, RIGHT, watched
from train.safety.monitors import Monitors
from train.safety.rules import Collapsed, Rule


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "monitors.jsonl").read_text(encoding="utf-8").splitlines()]


def monitors(folder: Path, *rules: Rule, after: int = 0) -> Monitors:
    return Monitors(folder, rules, after=after, tensorboard=False)


def good(watching: Monitors, step: int, loss: float = 0.5) -> None:
    watching.saw(step, [watched(RIGHT, answer=1.0), watched(NOWHERE, answer=0.0)])
    watching.ended(step, {"loss": loss})


def test_a_step_is_one_line_with_the_figures_of_rollouts_and_trainer(tmp_path: Path) -> None:
    with monitors(tmp_path) as watching:
        watching.saw(1, [watched(RIGHT, answer=1.0), watched(BROKEN)])
        watching.ended(1, {"loss": 0.25})
    (line,) = lines(tmp_path)
    assert line["step"] == 1
    assert line["trainer/loss"] == 0.25
    assert line["reward/answer"] == 1.0
    assert line["masked"] == {"a search or the engine failed": 1}


def test_the_batches_of_one_step_are_put_together(tmp_path: Path) -> None:
    with monitors(tmp_path) as watching:
        watching.saw(1, [watched(RIGHT, answer=1.0)])
        watching.saw(1, [watched(NOWHERE, answer=0.0)])
        assert watching.ended(1, {})["rollouts"] == 2
        assert watching.saw(2, [watched(RIGHT, answer=1.0)])["rollouts"] == 1


def test_a_step_whose_searches_all_fail_stops_the_run_before_anything_is_learned(tmp_path: Path) -> None:
    with Monitors(tmp_path, tensorboard=False) as watching:
        good(watching, 1)
        with pytest.raises(Collapsed, match=r"at step 2: every search of the step failed.*the retriever is dead"):
            watching.saw(2, [watched(BROKEN), watched(BROKEN)])
    assert [line["step"] for line in lines(tmp_path)] == [1, 2]


def test_a_step_with_a_fifth_of_its_searches_failing_goes_on(tmp_path: Path) -> None:
    with Monitors(tmp_path, tensorboard=False) as watching:
        for step in range(1, 6):
            watching.saw(
                step, [*[watched(RIGHT, answer=1.0)] * 2, *[watched(NOWHERE, answer=0.0)] * 2, watched(BROKEN)]
            )
            watching.ended(step, {"loss": 0.1})


def test_a_loss_that_is_no_number_stops_the_run_and_is_written(tmp_path: Path) -> None:
    with Monitors(tmp_path, tensorboard=False) as watching:
        good(watching, 1)
        with pytest.raises(Collapsed, match="trainer/loss is nan"):
            good(watching, 2, loss=float("nan"))
    assert lines(tmp_path)[-1]["trainer/loss"] == "nan"


def test_a_step_without_rollouts_has_the_trainers_figures_alone(tmp_path: Path) -> None:
    with monitors(tmp_path) as watching:
        good(watching, 1)
        assert watching.ended(2, {"loss": 0.5}) == {"trainer/loss": 0.5}


def test_a_run_that_goes_on_takes_back_the_steps_that_it_does_again_and_remembers_the_others(tmp_path: Path) -> None:
    high = Rule(name="high", figure="trainer/loss", above=1.0, steps=3, fix="go back")
    with monitors(tmp_path, high) as watching:
        for step in (1, 2, 3):
            good(watching, step, loss=0.5 if step == 1 else 2.0) if step < 3 else watching.ended(3, {"loss": 0.1})
    with (tmp_path / "monitors.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step": 4, "trainer/lo')
    with monitors(tmp_path, high, after=2) as watching:
        assert [line["step"] for line in lines(tmp_path)] == [1, 2]
        good(watching, 3, loss=2.0)
        with pytest.raises(Collapsed, match=r"the last 3 steps \(2, 2, 3\)"):
            good(watching, 4, loss=3.0)


def test_the_table_shows_the_last_step_beside_those_before(tmp_path: Path) -> None:
    with monitors(tmp_path) as watching:
        good(watching, 1, loss=1.0)
        good(watching, 2, loss=3.0)
        console = Console(width=120, file=StringIO())
        with console.capture() as printed:
            console.print(watching.table())
    (row,) = [line for line in printed.get().splitlines() if "trainer/loss" in line]
    assert [cell.strip() for cell in row.split("│")[2:6]] == ["3", "1", "1", "3"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_stops_the_run_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watching = monitors(tmp_path)

    def full(_path: str, _flags: int) -> int:
        return os.open("/dev/full", os.O_WRONLY)

    monkeypatch.setattr("train.common.lines.no_link", full)
    with pytest.raises(SetupError, match=r"No space left.*what was saved before is whole"):
        watching.ended(1, {"loss": 0.5})


@pytest.mark.train
@pytest.mark.slow
def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    reader: Any = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with Monitors(tmp_path, (), tensorboard=True) as watching:
        for step in (1, 2):
            good(watching, step, loss=step / 2)
    read = reader.EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    read_back = [(event.step, event.value) for event in read.Scalars("trainer/loss")]
    assert read_back == [(1, 0.5), (2, 1.0)]
    assert "reward/answer" in read.Tags()["scalars"]
