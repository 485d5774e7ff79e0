"""What the shipped checkpoint scores on the frozen test list. The bounds are promises of the README."""

import pytest

from agent.settings import load_settings
from train.evaluation.session import Evaluation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("protocol", ["cairn", "multisearch"])
def test_the_shipped_policy_answers_nine_questions_of_ten_and_no_type_badly(protocol: str) -> None:
    figures = Evaluation(load_settings(world="test-v1", protocol=protocol)).run()
    assert figures["n"] == 500
    assert figures["em"] >= 0.90
    assert min(group["em"] for group in figures["by_type"].values()) >= 0.75


@pytest.mark.parametrize("protocol", ["cairn", "multisearch"])
def test_without_searching_it_knows_next_to_nothing(protocol: str) -> None:
    settings = load_settings(world="test-v1", protocol=protocol)
    figures = Evaluation(settings, baseline="closed-book").run()
    free = [group for kind, group in figures["by_type"].items() if kind != "choice"]
    assert sum(group["em"] * group["n"] for group in free) / sum(group["n"] for group in free) <= 0.05
    assert figures["by_type"]["choice"]["em"] <= 0.25 + 0.05
