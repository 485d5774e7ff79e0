import json
import random
from pathlib import Path

import pytest

from agent.cli import run
from agent.plan import Node, Plan
from lab.benchmarks.executor import TimedPlan, measure, random_case
from tests import virtual_clock


def node(id: str, *parents: str) -> Node:
    return Node(id=id, query=id, source="web", parents=parents)


CASE = TimedPlan(
    Plan(nodes=(node("A"), node("B"), node("C", "A"), node("D", "C", "B"))), {"A": 0.1, "B": 0.5, "C": 0.2, "D": 0.05}
)


def test_the_longest_path_is_the_slowest_chain_not_the_sum():
    assert CASE.longest_path == pytest.approx(0.55)


def test_levels_hold_what_is_equally_deep():
    assert [[n.id for n in level.nodes] for level in CASE.levels] == [["A", "B"], ["C"], ["D"]]


def test_random_plans_are_as_promised():
    cases = [random_case(random.Random(seed)) for seed in range(50)]
    assert {len(case.plan.nodes) for case in cases} <= set(range(2, 13))
    assert all(0.02 <= seconds <= 0.2 for case in cases for seconds in case.latencies.values())
    assert any(n.parents for case in cases for n in case.plan.nodes)


def test_a_plan_takes_exactly_its_longest_path_and_level_by_level_or_in_series_longer():
    """In virtual time: no machine is too busy for it."""
    progress: list[int] = []
    figures = virtual_clock.run(measure(plans=40, at_once=8, seed=1, progress=progress.append))
    assert figures.ratio_p50 == pytest.approx(1.0, abs=1e-4)
    assert figures.ratio_max == pytest.approx(1.0, abs=1e-4)
    assert figures.holds
    assert figures.levels_p50 < figures.serial_p50
    assert 1.1 < figures.levels_p99 < figures.serial_p99
    assert sorted(progress) == list(range(1, 121))


def test_the_command_prints_one_object_and_writes_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert run(["bench", "executor", "--plans", "2", "--at-once", "2", "--json", "--write"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["ratio_p50"] <= figures["ratio_p99"]
    assert "level by level" in (tmp_path / "docs/bench/executor.md").read_text(encoding="utf-8")


def test_the_command_draws_a_table(capsys: pytest.CaptureFixture[str]):
    assert run(["bench", "executor", "--plans", "2"]) == 0
    assert "wall time / longest path" in capsys.readouterr().out
