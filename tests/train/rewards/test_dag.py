"""Reasoning-Search's rewards: a quarter for the format, a quarter for the plan, a half for the answer."""

import pytest

from tests.train.rewards.rollouts import PLAN, TASK, parts, rewarded, rollout, said
from train.rewards import RewardTools, Task

CHOICE = Task(question="Which were born there?", answers=("Lina", "Tom"), options=("Lina", "Tom", "Ann", "Bob"))


class Grades:
    """A judge that gives one grade, and notes the answers it grades."""

    def __init__(self, grade: float | None) -> None:
        self.grade = grade
        self.graded: list[str] = []

    async def score(self, task: Task, answer: str) -> float | None:
        self.graded.append(answer)
        return self.grade


def tools(grade: float | None = 1.0) -> RewardTools:
    return RewardTools(judge=Grades(grade))


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ((PLAN, said("Trieste")), (0.25, 0.25, 0.4)),
        # no plan, so neither its block nor its result
        (("<think>Known.</think>" + said("Trieste"),), (0.0, 0.0, 0.4)),
        # two thoughts
        ((PLAN, "<think>So.</think>" + said("Trieste")), (0.0, 0.25, 0.4)),
        # text beside the blocks is none of the four
        ((PLAN, "So it is " + said("Trieste")), (0.25, 0.25, 0.4)),
        # a node without a source
        ((PLAN.replace(" (news)", ""), said("Trieste")), (0.25, 0.0, 0.4)),
        # a source that there is not: the node is dropped
        ((PLAN.replace("(news)", "(library)"), said("Trieste")), (0.25, 0.0, 0.4)),
        # a circle: the only plan cannot run, and there is no answer
        ((PLAN.replace("A -> B", "A -> B\nB -> A"), said("Trieste")), (0.0, 0.0, 0.0)),
    ],
)
def test_the_printed_parts(turns: tuple[str, ...], expected: tuple[float, float, float]):
    found = parts("dag", rollout("dag", *turns), variant="printed", tools=tools(0.8))
    assert found == dict(zip(("format", "plan", "answer"), expected, strict=True))


@pytest.mark.parametrize(
    ("turns", "ours", "strict"),
    [
        ((PLAN, said("Trieste")), 0.25, 0.25),
        # what follows from the result, in its own words
        ((PLAN, "Lina Orr built it [1] and was born in Trieste [2]. " + said("Trieste")), 0.25, 0.0),
        # text in front of the plan, or between thought and plan
        (("Well. " + PLAN, said("Trieste")), 0.0, 0.0),
        ((PLAN.replace("<search>", "Well. <search>"), said("Trieste")), 0.0, 0.0),
        # a second thought is a block, not text
        ((PLAN, "<think>So.</think>" + said("Trieste")), 0.0, 0.0),
    ],
)
def test_ours_lets_the_policy_reason_behind_the_result_and_nowhere_else(
    turns: tuple[str, ...], ours: float, strict: float
):
    trace = rollout("dag", *turns)
    assert parts("dag", trace)["format"] == ours
    assert parts("dag", trace, strays="nowhere")["format"] == strict


@pytest.mark.parametrize(
    ("text", "f1", "exact"),
    [
        ("A and B", 0.5, 0.5),
        ("Lina", 0.5 * 2 / 3, 0.0),
        ("A, C", 0.5 * 2 / 4, 0.0),
        ("A, B, C, D", 0.5 * 4 / 6, 0.0),
        ("C", 0.0, 0.0),
    ],
)
def test_a_choice_is_scored_as_a_set_and_asks_no_judge(text: str, f1: float, exact: float):
    trace, judge = rollout("dag", PLAN, said(text)), Grades(1.0)
    printed = parts("dag", trace, CHOICE, variant="printed", tools=RewardTools(judge=judge))
    assert printed["answer"] == pytest.approx(f1, abs=1e-6)
    assert parts("dag", trace, CHOICE)["answer"] == exact
    assert not judge.graded


def test_a_judge_that_fails_masks_the_rollout():
    assert rewarded("dag", rollout("dag", PLAN, said("Trieste")), variant="printed", tools=tools(None)) is None


def test_a_judge_does_not_grade_an_answer_that_says_nothing():
    judge = Grades(1.0)
    trace = rollout("dag", PLAN, said("…"))
    assert parts("dag", trace, variant="printed", tools=RewardTools(judge=judge))["answer"] == 0.0
    assert not judge.graded


def test_offline_the_answer_is_scored_by_its_words():
    trace = rollout("dag", PLAN, said("Old Trieste"))
    assert parts("dag", trace, variant="printed", answer="f1")["answer"] == 0.333333
    assert parts("dag", trace, variant="printed", answer="em")["answer"] == 0.0
    assert parts("dag", trace, TASK)["answer"] == 0.166667


def test_where_nothing_can_be_answered_saying_so_is_right():
    task = Task(question="Where was no one born?", answers=(), unanswerable=True)
    honest, guess = rollout("dag", PLAN, said("I do not know.")), rollout("dag", PLAN, said("Trieste"))
    assert parts("dag", honest, task, variant="printed", tools=tools())["answer"] == 0.5
    assert parts("dag", guess, task, variant="printed", tools=tools())["answer"] == 0.0


def test_ours_pays_an_honest_rollout_in_full():
    assert parts("dag", rollout("dag", PLAN, said("Trieste"))) == {"format": 0.25, "plan": 0.25, "answer": 0.5}
