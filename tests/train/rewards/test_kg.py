"""DynaSearcher's rewards: r_acc and r_gain, by worked examples with alpha 0.5, gamma 0.9 and beta -0.2."""

from typing import Any

import pytest

from agent.evidence import Passage
from agent.trace import Trace
from tests.train.rewards.rollouts import KG_FIRST, KG_NEXT, LINA, TARN, TASK, boxed, parts, rollout
from train.rewards import Masked, Task, hashed_words, settings_of
from train.rewards.kg import KgSettings, penalty, recall


def printed(**changes: Any) -> KgSettings:
    settings = settings_of("kg", {"variant": "printed", **changes})
    assert isinstance(settings, KgSettings)
    return settings


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Trieste", 1.0),
        # shorter than 3 times one word: it is enough that the answer is in it
        ("old Trieste", 1.0),
        ("the old Trieste", 1.0),
        # three words: F1 = 2 / (3 + 1)
        ("old port Trieste", 0.5),
        ("in the old town Trieste", 0.4),
        # wrong, in the right format
        ("Rome", 0.1),
        ("Rome and some other old towns", 0.1),
    ],
)
def test_the_accuracy_by_length(text: str, value: float):
    assert parts("kg", rollout("kg", boxed(text)), variant="printed")["accuracy"] == pytest.approx(value)


@pytest.mark.parametrize(
    "turns",
    [
        ("<think>Known.</think><answer>Trieste</answer>",),
        ("Known. " + boxed("Trieste"),),
        ('<search>{"query": "Lina Orr"}</search>', boxed("Trieste")),
        (KG_FIRST, "<think>One.</think>" + boxed("Trieste")),
        ("<think>No answer.</think>",),
    ],
)
def test_a_wrong_format_is_worth_nothing(turns: tuple[str, ...]):
    assert parts("kg", rollout("kg", *turns), variant="printed")["accuracy"] == 0.0


@pytest.mark.parametrize(
    ("count", "hops", "value"),
    [
        (2, 2, 0.0),
        (3, 2, 0.1),
        (4, 2, 0.19),
        (8, 2, 1 - 0.9**6),
        (1, 2, 1 - 1 / 0.9),
        (0, 2, -0.2),
        (0, 4, -0.2),
        (3, None, 0.0),
    ],
)
def test_the_penalty(count: int, hops: int | None, value: float):
    assert penalty(count, hops, printed(), all_found=False) == pytest.approx(value)


@pytest.mark.parametrize(
    ("turns", "gain"),
    [
        # both passages, two retrievals for two hops
        ((KG_FIRST, KG_NEXT, boxed("Trieste")), 0.5),
        # half of them, a retrieval less: 0.5 * (0.5 + 0.1111)
        ((KG_FIRST, boxed("Trieste")), 0.5 * (0.5 + 1 / 0.9 - 1)),
        # half of them, once too often
        ((KG_FIRST, KG_FIRST, KG_FIRST, boxed("Trieste")), 0.5 * (0.5 - 0.1)),
        # nothing searched: a bonus of 0.1
        ((boxed("Trieste"),), 0.1),
    ],
)
def test_the_gain(turns: tuple[str, ...], gain: float):
    assert parts("kg", rollout("kg", *turns), variant="printed")["gain"] == pytest.approx(gain, abs=1e-6)


@pytest.mark.parametrize(
    ("found", "share"),
    [
        ([TARN, LINA], 1.0),
        ([TARN, TARN], 0.5),
        ([TARN.model_copy(update={"id": "tarn#2", "title": "Part two"})], 0.5),
        ([LINA.model_copy(update={"id": "kb-77"})], 0.5),
        ([LINA.model_copy(update={"id": "kb-77", "title": "Tom Berg"})], 0.0),
        ([], 0.0),
    ],
)
def test_a_passage_is_relevant_by_its_id_or_its_title(found: list[Passage], share: float):
    assert recall(found, TASK, printed(), vectors=hashed_words) == share


def test_a_passage_is_relevant_by_the_likeness_of_its_text():
    task = Task(question="Where?", answers=("Trieste",), texts=(TARN.text, LINA.text))
    near = TARN.model_copy(update={"id": "x", "title": "x", "text": TARN.text.replace("old ", "")})
    assert recall([near], task, printed(relevance="similar"), vectors=hashed_words) == 0.5
    assert recall([], task, printed(relevance="similar"), vectors=hashed_words) == 0.0


def test_likeness_to_texts_that_are_not_known_is_no_recall_of_zero():
    with pytest.raises(Masked, match="texts of the gold passages"):
        recall([TARN], TASK, printed(relevance="similar"), vectors=hashed_words)


def test_a_task_without_gold_passages_has_no_recall():
    task = Task(question="Where?", answers=("Trieste",))
    assert parts("kg", rollout("kg", KG_FIRST, boxed("Trieste")), task) == {"accuracy": 1.0, "gain": 0.0}


def whole() -> Trace:
    return rollout("kg", KG_FIRST, KG_NEXT, boxed("Trieste"))


def test_ours_pays_an_honest_rollout_in_full():
    assert parts("kg", whole()) == {"accuracy": 1.0, "gain": 0.5}
