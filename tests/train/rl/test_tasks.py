from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.build.shipped import SMALL
from agent.errors import SetupError
from tests.conftest import Echo
from tests.shipped import HUB
from tests.train.rl.small import recipe
from train.rl.tasks import Ask, tasks_of


def _questions(asks: list[Ask]) -> list[str]:
    return [ask.question.question for ask in asks]


def test_a_step_asks_the_same_whenever_it_is_drawn() -> None:
    small = recipe(steps=9)
    forward = [_questions(tasks_of(small).draw(step, 0, 2)) for step in range(5)]
    tasks = tasks_of(small)
    backward = [_questions(tasks.draw(step, 0, 2)) for step in reversed(range(5))]
    assert forward == backward[::-1]
    assert len({question for step in forward for question in step}) == 10


@pytest.mark.parametrize("learning", [{"resample": "full"}, {"resample": 4}], ids=["full", "bounded"])
def test_further_questions_are_others_than_those_of_any_step(learning: Mapping[str, object]) -> None:
    tasks = tasks_of(recipe(steps=4, learning={"name": "dapo", **learning}))
    first = {question for step in range(4) for question in _questions(tasks.draw(step, 0, 2))}
    more = [question for step in range(4) for n in (1, 2, 3, 4) for question in _questions(tasks.draw(step, n, 2))]
    assert len(set(more)) == len(more)
    assert not first & set(more)


def test_a_stage_of_the_curriculum_asks_by_its_mix() -> None:
    stages = ({"until": 0.5, "mix": {"chain1": 1.0}}, {"until": 1.0, "mix": {"comparison": 1.0}})
    tasks = tasks_of(recipe(steps=4, curriculum=stages))
    kinds = [{ask.question.type for ask in tasks.draw(step, 0, 2)} for step in range(4)]
    assert kinds == [{"chain1"}, {"chain1"}, {"comparison"}, {"comparison"}]


def test_held_out_questions_are_of_dev_worlds() -> None:
    tasks = tasks_of(recipe(report={"dev_questions": 20}))
    held = tasks.held_out()
    assert len(held) == 20
    assert all(ask.world is not None and ask.world.name.startswith("dev") for ask in held)


def test_a_task_of_a_world_has_the_texts_of_its_gold_passages() -> None:
    for ask in tasks_of(recipe(steps=2)).draw(0, 0, 4):
        assert ask.world is not None
        assert ask.task.gold
        assert ask.task.texts == tuple(ask.world.document(key).text for key in ask.task.gold)


def test_worlds_are_as_hard_as_the_recipe_draws_them() -> None:
    def documents(**data: object) -> set[str]:
        (ask,) = tasks_of(recipe(data={"people": 60, **data})).draw(0, 0, 1)
        assert ask.world is not None
        return {document.text for document in ask.world.documents}

    assert documents(difficulty={"noise": (1, 1)}) != documents(difficulty={"noise": (0, 0)})
    assert documents(difficulty={}) == documents()


def test_protocols_are_drawn_by_their_weights() -> None:
    weighted = recipe(protocols=("cairn", "multisearch"), data={"protocol_weights": {"multisearch": 0.0}})
    assert {ask.protocol.name for ask in tasks_of(weighted).draw(0, 0, 2)} == {"cairn"}


def test_a_policy_that_never_saw_dates_is_shown_none_in_rollouts() -> None:
    def dated(start: Path) -> set[bool]:
        small = recipe(start=str(start), protocols=("cairn", "evidence"))
        return {bool(ask.protocol.dated) for ask in tasks_of(small).draw(0, 0, 2)}

    assert dated(SMALL) == {False}
    assert dated(HUB) == {True}


def _list(tmp_path: Path, number: int, *, first: int = 0, name: str = "questions") -> Path:
    path = tmp_path / f"{name}.jsonl"
    row = '{{"id": "{0}", "question": "what is {0}?", "answers": ["{0}"]}}\n'
    path.write_text("".join(row.format(at) for at in range(first, first + number)), encoding="utf-8")
    return path


def test_a_list_is_drawn_whole_in_every_epoch(tmp_path: Path) -> None:
    listed = recipe(steps=6, data={"questions": _list(tmp_path, 4)})
    tasks = tasks_of(listed, sources={"web": Echo()})
    epochs = [[q for step in (0, 1) for q in _questions(tasks.draw(2 * n + step, 0, 2))] for n in range(3)]
    assert all(sorted(epoch) == [f"what is {at}?" for at in range(4)] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1


def test_a_list_from_easy_to_hard_keeps_its_order(tmp_path: Path) -> None:
    listed = recipe(data={"questions": _list(tmp_path, 4), "order": "listed"})
    tasks = tasks_of(listed, sources={"web": Echo()})
    assert _questions(tasks.draw(0, 0, 2) + tasks.draw(1, 0, 2)) == [f"what is {at}?" for at in range(4)]


def test_a_list_shorter_than_a_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="has 1 questions, fewer than the 2"):
        tasks_of(recipe(data={"questions": _list(tmp_path, 1)}), sources={"web": Echo()})


def test_likeness_to_texts_that_a_list_does_not_have_is_refused(tmp_path: Path) -> None:
    reward = ({"name": "kg", "settings": {"relevance": "similar"}},)
    with pytest.raises(SetupError, match="texts of gold passages"):
        tasks_of(recipe(data={"questions": _list(tmp_path, 4)}, reward=reward), sources={"web": Echo()})


def test_a_setting_of_the_sources_that_there_is_not_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"`search` in the recipe's \[data\] cannot be used: corpsu"):
        tasks_of(recipe(data={"questions": _list(tmp_path, 2), "search": {"corpsu": "x"}}))


def test_the_questions_of_a_dev_list_are_held_out(tmp_path: Path) -> None:
    lists = {"questions": _list(tmp_path, 4), "dev": _list(tmp_path, 5, first=4, name="dev")}
    tasks = tasks_of(recipe(data=lists, report={"dev_questions": 3}), sources={"web": Echo()})
    assert _questions(tasks.held_out()) == ["what is 4?", "what is 5?", "what is 6?"]
    assert not tasks_of(recipe(data={"questions": lists["questions"]}), sources={"web": Echo()}).held_out()


def test_a_dev_question_that_is_trained_on_is_refused(tmp_path: Path) -> None:
    lists = {"questions": _list(tmp_path, 4), "dev": _list(tmp_path, 2, first=3, name="dev")}
    with pytest.raises(SetupError, match=r"1 of the 2 questions of .* are trained on, '3' for one"):
        tasks_of(recipe(data=lists), sources={"web": Echo()})


def test_dev_belongs_to_a_list(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`dev` is for a question list"):
        recipe(data={"dev": _list(tmp_path, 2)})
