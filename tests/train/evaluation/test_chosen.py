import pytest

from agent.errors import SetupError
from train.evaluation.chosen import QuestionChoice
from train.evaluation.questions import GoldQuestion

LISTED = [
    GoldQuestion(id=f"q{i}", question=f"Who is {i}?", answers=("x",), type="chain" if i % 3 else "choice")
    for i in range(60)
]


def names(choice: QuestionChoice) -> list[str]:
    return [question.id for question in choice.pick(LISTED)]


def test_nothing_chosen_is_all_in_their_order():
    assert QuestionChoice().pick(LISTED) == LISTED
    assert names(QuestionChoice(limit=3)) == ["q0", "q1", "q2"]


def test_a_sample_is_drawn_again_with_its_seed_and_a_larger_one_contains_it():
    few, more = names(QuestionChoice(limit=10, sample=1)), names(QuestionChoice(limit=20, sample=1))
    assert few == more[:10]
    assert sorted(few) != sorted(names(QuestionChoice(limit=10, sample=2)))
    assert sorted(names(QuestionChoice(sample=1))) == sorted(question.id for question in LISTED)


def test_types_are_chosen_before_the_limit_counts():
    assert names(QuestionChoice(limit=2, types=("choice",))) == ["q0", "q3"]


def test_a_type_that_no_question_has_is_said_with_those_there_are():
    with pytest.raises(SetupError, match=r"has the type chian; it has chain, choice"):
        QuestionChoice(types=("chain", "chian")).pick(LISTED)


def test_the_report_describes_what_was_chosen():
    assert QuestionChoice().described() == {}
    assert QuestionChoice(limit=5, sample=0, types=("a", "b")).described() == {
        "limit": "5",
        "sample": "0",
        "types": "a,b",
    }
