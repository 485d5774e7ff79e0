"""An expert's habits show in what the loop makes of its trajectories, each where it is drawn and nowhere else."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from agent.protocols import protocol_named, protocol_names
from agent.trace import Evidenced, Merged, Planned, Trace
from agent.world import Question
from tests.train.sft.test_episodes import rollout, world
from train.common.habit import Habit
from train.evaluation.metrics import cover
from train.sft.episodes import EpisodePiece, habitual_episode
from train.sft.oracle import Unreachable
from train.sft.oracle.habits import HabitExpert, drawn_habits, possible_habits


def with_habits(name: str, *habits: Habit, most: int = 25) -> Iterator[tuple[Question, Trace]]:
    """Rollouts of questions in which every one of the habits can show."""
    expert, protocol, made = HabitExpert(world()), protocol_named(name), 0
    for question in world().questions:
        if made == most or not set(habits) <= set(possible_habits(question, protocol)):
            continue
        try:
            found = habitual_episode(expert, question, protocol, habits)
        except Unreachable:
            continue
        trace = rollout(question, found, name)
        assert [EpisodePiece(s.by, s.text) for s in trace.segments] == list(found.pieces)
        assert trace.stopped is not None
        assert trace.stopped.reason == "answered"
        made += 1
        yield question, trace


def sent(trace: Trace) -> list[int]:
    """Queries of each round."""
    return [len(step.plan.nodes) for step in trace.steps if isinstance(step, Planned)]


@pytest.mark.parametrize(("habit", "queries"), [("one_query", 1), ("two_queries", 2)])
def test_a_round_that_looks_for_one_thing_has_as_many_queries_as_the_habit_says(habit: Habit, queries: int) -> None:
    alone = [sent(trace)[0] for question, trace in with_habits("multisearch", habit) if len(question.plan[0]) == 1]
    assert len(alone) > 5
    assert set(alone) == {queries}


def test_a_bare_merge_holds_no_answer_and_the_answer_is_right_all_the_same() -> None:
    right = held = total = 0
    for question, trace in with_habits("multisearch", "bare_merge"):
        merges = [step.text for step in trace.steps if isinstance(step, Merged)]
        held += any(cover(text, question.answers) for text in merges)
        right += trace.answer in question.answers
        total += 1
    assert total > 10
    assert right > 0.8 * total
    assert held < 0.2 * total


def test_poor_evidence_holds_no_answer() -> None:
    texts = [
        (question, step.text)
        for question, trace in with_habits("evidence", "poor_evidence")
        for step in trace.steps
        if isinstance(step, Evidenced)
    ]
    assert len(texts) > 10
    assert sum(cover(text, question.answers) for question, text in texts) < 0.2 * len(texts)


def test_who_gives_up_before_searching_searches_nothing() -> None:
    for _, trace in with_habits("reflect", "unsearched"):
        assert not sent(trace)
        assert trace.answer == "I do not know"


def test_a_repeated_search_is_the_first_one_again_and_the_answer_stays() -> None:
    found = list(with_habits("reflect", "repeats"))
    assert len(found) > 10
    for question, trace in found:
        queries = [node.query for step in trace.steps if isinstance(step, Planned) for node in step.plan.nodes]
        assert queries[0] == queries[1]
        assert trace.answer in (*question.answers, "I do not know")


def test_habits_come_together() -> None:
    for _, trace in with_habits("multisearch", "one_query", "bare_merge", most=5):
        assert any(isinstance(step, Merged) for step in trace.steps)
        assert not any("Nothing is missing" in step.text and " is " in step.text.split(".")[0]
                       for step in trace.steps if isinstance(step, Merged))  # fmt: skip


def test_each_habit_is_drawn_with_its_own_probability() -> None:
    rng, counts = random.Random(1), Counter[Habit]()
    habits: dict[Habit, float] = {"one_query": 0.3, "bare_merge": 0.5, "known": 1.0}
    possible: list[Habit] = ["one_query", "bare_merge"]
    for _ in range(4000):
        counts.update(drawn_habits(rng, habits, possible))
    assert counts["one_query"] / 4000 == pytest.approx(0.3, abs=0.03)
    assert counts["bare_merge"] / 4000 == pytest.approx(0.5, abs=0.03)
    assert "known" not in counts


@pytest.mark.parametrize("name", protocol_names())
def test_every_habit_that_is_possible_makes_a_trajectory(name: str) -> None:
    protocol = protocol_named(name)
    habits: set[Habit] = {habit for question in world().questions for habit in possible_habits(question, protocol)}
    for habit in habits:
        assert next(with_habits(name, habit, most=1), None) is not None, habit
