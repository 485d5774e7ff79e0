import pytest

from agent.errors import SetupError
from train.evaluation.chosen import Choice
from train.evaluation.questions import GoldQuestion

LISTED = [
    GoldQuestion(id=f"q{i}", question=f"Who is {i}?", answers=("x",), type="chain" if i % 3 else "choice")
    for i in range(60)
]


def names(choice: Choice) -> list[str]:
    return [question.id for question in choice.pick(LISTED)]


def test_nothing_chosen_is_all_in_their_order():
    assert Choice().pick(LISTED) == LISTED
    assert names(Choice(limit=3)) == ["q0", "q1", "q2"]


def test_a_sample_is_drawn_again_with_its_seed_and_a_larger_one_contains_it():
    few, more = names(Choice(limit=10, sample=1)), names(Choice(limit=20, sample=1))
    assert few == more[:10]
    assert sorted(few) != sorted(names(Choice(limit=10, sample=2)))
    assert sorted(names(Choice(sample=1))) == sorted(question.id for question in LISTED)


def test_types_are_chosen_before_the_limit_counts():
    assert names(Choice(limit=2, types=("choice",))) == ["q0", "q3"]


def test_a_type_that_no_question_has_is_said_with_those_there_are():
    with pytest.raises(SetupError, match=r"has the type chian; it has chain, choice"):
        Choice(types=("chain", "chian")).pick(LISTED)


def test_the_report_is_told_of_what_was_chosen():
    assert Choice().described() == {}
    assert Choice(limit=5, sample=0, types=("a", "b")).described() == {"limit": "5", "sample": "0", "types": "a,b"}
