"""What a training command shows while a run goes."""

import pytest
from rich.table import Table

from train.common.progress import step_progress


def figures(step: int) -> Table:
    table = Table("figure", "now")
    table.add_row("trainer/loss", f"{step}.25")
    return table


def test_a_run_shows_how_far_it_is_and_the_last_steps_figures(capsys: pytest.CaptureFixture[str]) -> None:
    done = 0
    with step_progress(5, lambda: figures(done)) as show:
        for done in (1, 2):
            show(done, f"reward 0.{done}")
    printed = capsys.readouterr().err
    assert "reward 0.2" in printed
    assert "2/5" in printed
    assert "trainer/loss" in printed
    assert "2.25" in printed
    assert "1.25" not in printed


def test_a_process_that_keeps_no_figures_shows_the_bar_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with step_progress(2, lambda: None) as show:
        show(2, "reward 1.000")
    printed = capsys.readouterr().err
    assert "2/2" in printed
    assert "figure" not in printed
