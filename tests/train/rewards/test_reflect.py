"""The rewards of "Learning When to Search": two stages of r_a, three cases of r_s, the shape of the output."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agent.trace import Trace
from tests.train.rewards.rollouts import looked_up, parts, reflected, rewarded, rollout, said
from tests.train.rewards.test_dag import Grades
from train.rewards import RewardTools, Task, settings_of
from train.rewards.reflect import ReflectSettings, answer_part, average_similarity, search_part, stage_at


def printed(**changes: Any) -> ReflectSettings:
    settings = settings_of("reflect", {"variant": "printed", **changes})
    assert isinstance(settings, ReflectSettings)
    return settings


@pytest.mark.parametrize(
    ("right", "count", "stage", "value"),
    [
        (True, 0, 1, 1.0),
        (True, 4, 1, 1.0),
        (False, 0, 1, -1.0),
        (False, 1, 1, -0.7),
        (False, 4, 1, 0.2),
        (True, 0, 2, 1.0),
        (True, 1, 2, 0.7),
        (True, 4, 2, -0.2),
        (False, 0, 2, -1.0),
        (False, 4, 2, -1.0),
        (True, 1, 3, 0.7),
        (False, 1, 3, -0.7),
    ],
)
def test_the_two_stages(right: bool, count: int, stage: int, value: float):
    assert answer_part(right, count, stage, printed()) == pytest.approx(value)


@pytest.mark.parametrize(("progress", "stage"), [(0.0, 1), (0.49, 1), (0.5, 2), (1.0, 2)])
def test_the_schedule_switches_once(progress: float, stage: int):
    assert stage_at(progress, printed()) == stage
    assert stage_at(progress, printed(stage=2)) == 2
    assert stage_at(progress, printed(stage="both")) == 3
    assert stage_at(progress, printed(switch=0.0)) == 2


def vectors(*rows: tuple[float, float]) -> NDArray[np.float32]:
    return np.array(rows, np.float32)


@pytest.mark.parametrize(
    ("rows", "as_printed", "as_mean"),
    [
        (vectors((1, 0), (2, 0)), 0.5, 1.0),
        (vectors((1, 0), (0, 3)), 0.0, 0.0),
        (vectors((1, 0), (-1, 0)), -0.5, -1.0),
        # cosines 1, 0, 0 of three pairs: 1 / 6 or 1 / 3
        (vectors((1, 0), (1, 0), (0, 1)), 1 / 6, 1 / 3),
        # cosines 0.6 and 0.8 and 0: 1.4 / 6 or 1.4 / 3
        (vectors((1, 0), (0.6, 0.8), (0, 1)), 1.4 / 6, 1.4 / 3),
        (vectors((0, 0), (1, 0)), 0.0, 0.0),
    ],
)
def test_the_similarity_of_queries(rows: NDArray[np.float32], as_printed: float, as_mean: float):
    assert average_similarity(rows, printed()) == pytest.approx(as_printed)
    assert average_similarity(rows, printed(similarity="mean")) == pytest.approx(as_mean)
    assert average_similarity(rows, printed(opposite=False)) == pytest.approx(max(as_printed, 0.0))


@pytest.mark.parametrize(
    ("queries", "count", "value"),
    [
        ((), 0, 0.0),
        (("Tarn Harbour builder",), 1, 0.0),
        (("who built Tarn Harbour",), 1, -1.0),
        (("builder of Tarn Harbour",), 1, -1.0),
        (("exactly Tarn Harbour builder",), 1, -1.0),
        (("who built Tarn Harbour", "Lina Orr"), 2, -0.3),
    ],
)
def test_the_three_cases_of_the_search_reward(queries: tuple[str, ...], count: int, value: float):
    assert search_part(queries, count, 0.3, right=False, settings=printed()) == value


def two_rounds(answer: str) -> Trace:
    again = reflected(looked_up("Lina Orr birthplace", think=""))
    return rollout("reflect", looked_up("Tarn Harbour builder"), again, reflected(said(answer)))


def opposite(texts: object) -> NDArray[np.float32]:
    return vectors((1, 0), (-1, 0))


@pytest.mark.parametrize(
    ("trace", "progress", "expected"),
    [
        (two_rounds("Trieste"), 0.0, (1.0, 0.5, 1.0)),
        (two_rounds("Trieste"), 1.0, (0.4, 0.5, 1.0)),
        (two_rounds("Rome"), 0.0, (-0.4, 0.5, 1.0)),
        (two_rounds("Rome"), 1.0, (-1.0, 0.5, 1.0)),
        (rollout("reflect", "<think>Known.</think>" + reflected(said("Trieste"))), 1.0, (1.0, 0.0, 1.0)),
        (rollout("reflect", "<think>Known.</think>" + said("Trieste")), 1.0, (1.0, 0.0, -1.0)),
        (rollout("reflect", looked_up("Lina Orr"), said("Trieste")), 1.0, (0.7, 0.0, -1.0)),
        (rollout("reflect", "Well. " + looked_up("Lina Orr"), reflected(said("Trieste"))), 1.0, (0.7, 0.0, -1.0)),
    ],
)
def test_whole_rollouts(trace: Trace, progress: float, expected: tuple[float, float, float]):
    tools = RewardTools(vectors=opposite)
    found = parts("reflect", trace, variant="printed", right="em", progress=progress, tools=tools)
    assert found == pytest.approx(dict(zip(("answer", "search", "format"), expected, strict=True)))


def test_a_thought_before_each_search_can_be_required():
    assert parts("reflect", two_rounds("Trieste"), variant="printed", right="em", think_again=True)["format"] == -1.0


@pytest.mark.parametrize(("grade", "answer"), [(1.0, 1.0), (0.5, 1.0), (0.4, -1.0)])
def test_a_judge_says_what_is_right(grade: float, answer: float):
    trace = rollout("reflect", "<think>Known.</think>" + reflected(said("In Trieste, Italy")))
    assert parts("reflect", trace, variant="printed", tools=RewardTools(judge=Grades(grade)))["answer"] == answer


def test_a_judge_that_fails_masks_the_rollout():
    trace = rollout("reflect", "<think>Known.</think>" + reflected(said("Trieste")))
    assert rewarded("reflect", trace, variant="printed", tools=RewardTools(judge=Grades(None))) is None


def test_ours_pays_an_honest_rollout_in_full():
    found = parts("reflect", two_rounds("Trieste"))
    assert found == {"answer": 1.0, "search": 0.0, "format": 1.0}


def test_in_ours_a_right_answer_is_worth_more_than_a_wrong_one_however_much_was_searched():
    ours = settings_of("reflect")
    assert isinstance(ours, ReflectSettings)
    for stage in (1, 2):
        wrong = max(answer_part(False, count, stage, ours) for count in range(20))
        assert min(answer_part(True, count, stage, ours) for count in range(20)) > wrong


def test_giving_up_is_right_only_where_nothing_can_be_answered():
    trace = rollout("reflect", "<think>Known.</think>" + reflected(said("I do not know.")))
    nothing = Task(question="Where was no one born?", answers=(), unanswerable=True)
    assert parts("reflect", trace, nothing)["answer"] == 1.0
    assert parts("reflect", trace)["answer"] == -1.0
