"""The race against TRL's trainer: the same rows from the same weights, and both learn the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("peft")

from agent import cli  # noqa: E402 - only where torch is
from agent.errors import SetupError  # noqa: E402
from lab.benchmarks.sft import WAYS, SftFigures, SftPlan, measure, same_loss  # noqa: E402
from tests.train.starts import rows, start  # noqa: E402
from train.distill.rows import write_rows  # noqa: E402

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> SftPlan:
    """Three steps of a tiny Llama in float32, after the one that is not timed."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("race")
    kept = rows(40)
    questions = (row.model_copy(update={"question": f"{number}?"}) for number, row in enumerate(kept))
    held_out = [row for row in questions if row.held_out]
    assert held_out
    write_rows(folder / "rows.jsonl", [*kept, *held_out])
    begin = start("llama", folder / "llama")
    how: dict[str, Any] = {"steps": 3, "batch_tokens": 1200, "max_tokens": 1000, "lr": 1e-2, "bf16": False}
    return SftPlan(start=str(begin), rows=folder / "rows.jsonl", rank=4, **how)


def test_every_run_that_ends_is_reported(plan: SftPlan) -> None:
    done: list[int] = []
    (ours,) = measure(replace(plan, steps=1), times=1, ways=("ours",), report=done.append)
    assert done == [1]
    assert ours.way == "ours"


def test_losses_that_differ_by_a_tenth_of_what_was_learned_are_not_alike() -> None:
    def of(after: float) -> SftFigures:
        return SftFigures("ours", before=5.0, after=[after])

    assert same_loss([of(3.0), of(3.1)])
    assert not same_loss([of(3.0), of(3.3)])


def test_too_few_rows_are_a_sentence(plan: SftPlan) -> None:
    many = SftPlan(start=plan.start, rows=plan.rows, steps=1000, batch_tokens=1200, max_tokens=1000)
    with pytest.raises(SetupError, match="name a larger file, or fewer --steps"):
        measure(many, times=1)


@pytest.mark.slow
def test_all_ways_see_the_same_rows_and_learn_alike_and_the_command_prints_it_and_writes_its_page(
    plan: SftPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["bench", "sft", "--start", plan.start, "--rows", str(plan.rows), "--rank", "4", "--steps", "3"]
    command += ["--batch-tokens", "1200", "--max-tokens", "1000", "--lr", str(plan.lr), "--float32"]
    command += ["--times", "1", "--threads", "1"]
    assert cli.run([*command, "--write", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["way"] for one in said["ways"]] == list(WAYS)
    ours, theirs, by_length = said["ways"]
    assert ours["before"] == theirs["before"] == by_length["before"], "the same weights and the same new adapter"
    assert all(one["after"][0] < one["before"] - 0.3 for one in said["ways"])
    assert said["same_loss"]
    assert all(one["middle"] > 0 for one in said["ways"])
    assert ours["padding"] < theirs["padding"]
    assert 0 <= ours["padding"] < 0.2
    assert said["ratios"].keys() == {"trl", "trl, by length"}
    assert said["holds"] == (said["ratios"]["trl"] >= 1.5)
    page = (tmp_path / "docs" / "bench" / "sft.md").read_text(encoding="utf-8")
    assert "| ours |" in page
    assert "float32" in page
