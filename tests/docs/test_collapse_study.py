"""What the page about collapse says of its runs is what their figures say."""

import json
import re
from typing import Any

import pytest

from tests.docs.blocks import ROOT

RUNS: dict[str, Any] = json.loads((ROOT / "docs" / "bench" / "collapse.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "collapse.md").read_text(encoding="utf-8")


def em(case: str, side: str) -> list[float]:
    return [value for _, value in RUNS[case][side]["trainer/dev_em"]]


def test_the_page_shows_every_run() -> None:
    assert set(re.findall(r"bench/collapse-(\w+)\.svg", PAGE)) == set(RUNS)
    for case, run in RUNS.items():
        assert (ROOT / "docs" / "bench" / f"collapse-{case}.svg").is_file()
        cells = [f"{em(case, side)[-1]:.3f}".removeprefix("0") for side in ("broken", "fixed")]
        assert f"| {run['title']} | {' | '.join(cells)} |" in PAGE


def test_a_rate_that_is_too_high_breaks_the_policy_and_a_rule_ends_the_run() -> None:
    assert em("rate", "broken")[-1] < em("rate", "broken")[0] - 0.3
    assert em("rate", "fixed")[-1] >= em("rate", "fixed")[0]
    assert "answers are no longer closed" in RUNS["rate"]["broken"]["stopped"]


def test_a_reward_that_all_get_teaches_nothing_and_a_rule_ends_the_run() -> None:
    assert len(set(em("flat", "broken"))) == 1
    assert "every rollout gets the same reward" in RUNS["flat"]["broken"]["stopped"]


@pytest.mark.parametrize("case", RUNS)
def test_what_fixes_a_run_lets_it_end(case: str) -> None:
    assert RUNS[case]["fixed"]["stopped"] == ""
