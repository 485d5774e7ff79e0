"""Rewards by name: what exists, and what is refused with a sentence."""

import asyncio
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.errors import SetupError
from agent.protocols import load_protocol
from agent.sources.questions import GoldQuestion
from agent.trace import Trace
from tests.train.rewards.rollouts import MERGED, TASK, THREE, boxed, parts, rollout, said
from train.rewards import RewardTools, Task, reward_names, reward_of, settings_of
from train.rewards.reflect import ReflectSettings


def test_there_are_five_and_the_outcome_alone():
    assert reward_names() == ["multisearch", "dag", "evidence", "reflect", "kg", "outcome"]


def test_a_reward_without_a_judge_imports_neither_a_client_of_models_nor_torch():
    code = "import sys, train.rewards; sys.exit('openai' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("name", reward_names())
def test_what_ours_changes_is_a_setting_that_there_is_and_differs(name: str):
    printed, ours = settings_of(name, {"variant": "printed"}), settings_of(name)
    changed = {key for key, value in printed if getattr(ours, key) != value}
    assert changed == set(type(printed).ours)


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("multi", {}, "there is no reward 'multi'"),
        ("kg", {"variant": "best"}, "no variant 'best'"),
        ("kg", {"gama": 0.9}, "gama"),
        ("reflect", {"stage": 3}, "stage"),
        ("dag", {"variant": "printed"}, "needs a judge"),
        ("evidence", {}, "needs a reader"),
        ("reflect", {"right": "judge"}, "needs a judge"),
    ],
)
def test_what_cannot_be_is_refused_with_its_name(name: str, settings: dict[str, Any], said: str):
    with pytest.raises(SetupError, match=said):
        reward_of(name, settings)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("reflect", {"switch": 250}),
        ("reflect", {"right_from": 50}),
        ("reflect", {"beta": -0.3}),
        ("evidence", {"evidence_share": 70}),
        ("evidence", {"gamma_answer": -0.2}),
        ("multisearch", {"merge_share": -1}),
        ("multisearch", {"merge_bonus": math.nan}),
        ("kg", {"similar_from": 80}),
        ("kg", {"gamma": 0.0}),
        ("kg", {"gamma": 90}),
        ("kg", {"times": -3}),
        ("kg", {"least_penalty": 0.2}),
        ("dag", {"answer_weight": -1}),
        ("outcome", {"format_bonus": math.inf}),
    ],
)
@pytest.mark.parametrize("variant", ["ours", "printed"])
def test_a_value_that_no_training_could_mean_is_refused(name: str, settings: dict[str, Any], variant: str):
    with pytest.raises(SetupError, match=f"the settings of the reward '{name}' cannot be used: {next(iter(settings))}"):
        settings_of(name, {**settings, "variant": variant})


def test_settings_of_another_reward_are_refused():
    with pytest.raises(SetupError, match="another reward"):
        reward_of("kg", settings_of("dag"))


def test_lists_from_a_recipe_become_word_lists():
    settings = settings_of("reflect", {"prepositions": ["of"], "modifiers": []})
    assert isinstance(settings, ReflectSettings)
    assert settings.prepositions == ("of",)


def test_a_task_is_made_of_a_question():
    question = GoldQuestion(id="q", question="Where?", answers=("Trieste",), supporting=("a",), titles=("A",), hops=2)
    task = Task.of(question, texts=["all of a"])
    assert (task.gold, task.titles, task.texts, task.hops, task.unanswerable) == (
        ("a",),
        ("A",),
        ("all of a",),
        2,
        False,
    )
    assert task.as_question().answers == ("Trieste",)


def test_a_task_without_an_answer_must_say_that_there_is_none():
    with pytest.raises(ValueError, match="no gold answer"):
        Task(question="Where?", answers=(" ",))
    assert Task(question="Where?", answers=(), unanswerable=True).unanswerable


def test_a_protocol_of_ones_own_is_a_tool(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\nprompt = "Q: {question}"\nplan = "query"\nwell_formed = "^answer $"\n'
        '[tags]\nsearch = "ask"\ninformation = "found"\nanswer = "reply"\n',
        encoding="utf-8",
    )
    trace = rollout("multisearch", THREE, MERGED + said("Trieste")).model_copy(update={"protocol": "mine"})
    trace.segments = [
        s.model_copy(update={"text": "<reply>Trieste</reply>"}) for s in trace.segments if s.by == "policy"
    ][:1]
    reward = reward_of("outcome", {"format_bonus": 0.5}, tools=RewardTools(protocol=load_protocol(path)))
    found = asyncio.run(reward.score(trace, TASK))
    assert found is not None
    assert found.parts == {"answer": 1.0, "format": 0.5}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("A", (0.0, 2 / 3, 0.0, 1 / 3)),
        ("A and C", (1.0, 1.0, 1.0, 1.0)),
        ("Brell, Dell", (1.0, 1.0, 1.0, 1.0)),
        ("A, B and C", (0.0, 4 / 5, 1.0, 2 / 5)),
    ],
)
def test_of_several_right_options_all_must_be_named(text: str, values: tuple[float, float, float, float]):
    task = Task(question="Which?", answers=("Dell", "Brell"), options=("Dell", "Tarn", "Brell"))
    trace = rollout("multisearch", said(text))
    found = [parts("outcome", trace, task, answer=metric)["answer"] for metric in ("em", "f1", "cover", "mean")]
    assert found == pytest.approx(values)
    accuracy = parts("kg", rollout("kg", boxed(text)), task, variant="printed")["accuracy"]
    assert accuracy == pytest.approx(max(values[1], 0.1))


@pytest.mark.parametrize(
    ("turns", "needs", "value"),
    [((THREE, MERGED + said("Trieste")), True, 1.0), ((said("Trieste"),), True, 0.0), ((said("Trieste"),), False, 1.0)],
    ids=["searched", "not searched", "not needed"],
)
def test_the_outcome_may_need_a_search(turns: tuple[str, ...], needs: bool, value: float):
    assert parts("outcome", rollout("multisearch", *turns), needs_search=needs)["answer"] == value


@pytest.mark.parametrize(
    ("text", "unknown", "unanswerable", "value"),
    [
        ("I do not know", 0.0, False, 0.0),
        ("I do not know", 0.3, False, 0.3),
        ("Rome", 0.3, False, 0.0),
        ("Trieste", 0.3, False, 1.0),
        ("I do not know", 0.3, True, 1.0),
        ("Rome", 0.3, True, 0.0),
    ],
)
def test_saying_that_one_does_not_know_may_pay_more_than_a_wrong_guess(
    text: str, unknown: float, unanswerable: bool, value: float
):
    task = replace(TASK, unanswerable=unanswerable, answers=() if unanswerable else TASK.answers)
    reward = reward_of("outcome", {"unknown": unknown})
    scored = asyncio.run(reward.score(rollout("multisearch", THREE, MERGED + said(text)), task))
    assert scored is not None
    assert scored.parts["answer"] == value


def test_an_answer_that_sounds_like_not_knowing_is_right_where_it_is_the_gold_one():
    task = replace(TASK, answers=("Cannot be determined",))
    reward = reward_of("outcome", {"unknown": 0.3})
    scored = asyncio.run(reward.score(rollout("multisearch", THREE, MERGED + said("Cannot be determined")), task))
    assert scored is not None
    assert scored.parts["answer"] == 1.0


def test_many_rollouts_can_be_scored_at_once():
    reward = reward_of("multisearch")
    made: list[Trace] = [rollout("multisearch", said(text)) for text in ("Trieste", "Rome")]

    async def both() -> list[float]:
        found = await asyncio.gather(*(reward.score(trace, TASK) for trace in made))
        return [one.total for one in found if one is not None]

    assert asyncio.run(both()) == [1.0, 0.0]
