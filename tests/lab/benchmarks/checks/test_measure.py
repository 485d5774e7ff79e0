import json
from collections import Counter
from pathlib import Path

import pytest

from agent.cli import run
from agent.world.world import World
from lab.benchmarks.checks.cases import CORRUPTIONS, CaseWriter, ClaimCase, Corruption
from lab.benchmarks.checks.measure import Checked, ClaimFigures, measure
from train.world.shards import make_world


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(5, split="train", people=40, questions=60)


def figures(**counts: tuple[int, int]) -> ClaimFigures:
    """Of each kind, how many of how many are not found; `true` in other words."""
    made: list[Checked] = []
    for kind, (refused, checked) in counts.items():
        corruption: Corruption | None = None if kind == "true" else kind  # type: ignore[assignment]
        made += [
            Checked(ClaimCase("c", (1,), corruption, "r"), "not_found" if n < refused else "close")
            for n in range(checked)
        ]
    return ClaimFigures(1, tuple(made), 1.0)


def test_each_kind_of_wrong_claim_is_as_frequent_as_it_can_be(world: World):
    cases = [case for one in CaseWriter(world, seed=0).write() for case in one.cases]
    kinds = Counter(case.corruption for case in cases if case.corruption)
    assert set(kinds) == set(CORRUPTIONS)
    assert max(kinds.values()) <= 1.3 * min(kinds.values())


def test_a_claim_cites_what_its_trace_has_shown_and_a_wrong_one_is_none_of_the_true_ones(world: World):
    for one in CaseWriter(world, seed=0).write():
        numbers = {passage.number for passage in one.trace.passages}
        assert all(set(case.cites) <= numbers for case in one.cases)
        true = {case.text for case in one.cases if case.corruption is None}
        assert true.isdisjoint(case.text for case in one.cases if case.corruption)


def test_the_same_seed_gives_the_same_claims(world: World):
    assert list(CaseWriter(world, seed=3).write()) == list(CaseWriter(world, seed=3).write())


def test_claims_of_a_training_world_are_distinguished(world: World):
    made = measure([world], traces=60)
    assert made.recall() >= 0.95
    assert made.precision() >= 0.95


def test_precision_weighs_as_many_true_claims_as_false_ones():
    found = figures(entity=(90, 100), number=(100, 100), relation=(100, 100), negation=(100, 100), true=(10, 200))
    assert found.recall(["entity"]) == pytest.approx(0.9)
    assert found.recall() == pytest.approx(390 / 400)
    assert found.precision(["entity"]) == pytest.approx(90 / 95)
    assert found.precision() == pytest.approx(390 / 410)
    assert not found.holds


@pytest.mark.slow
def test_the_command_writes_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAIRN_DATA", str(tmp_path))
    assert run(["bench", "checks", "--traces", "100", "--write", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["traces"] == 100
    assert found["holds"]
    assert found["rollout_share"] < 0.5
    page = (tmp_path / "docs/bench/checks.md").read_text(encoding="utf-8")
    assert "| another relation |" in page
    assert "Real pages" not in page
