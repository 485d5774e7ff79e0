"""The perfect reader believes what is current, and needs what it is given."""

import pytest

from agent.world import World, load_world
from train.world.reader import answer_from, first_passage_answer


@pytest.fixture(scope="module")
def frozen() -> World:
    return load_world("test-v1")


def test_a_perfect_reader_believes_the_report_and_not_the_outdated_page(frozen: World) -> None:
    question = next(q for q in frozen.questions if q.type == "chain1" and q.trap and "news" in q.plan[0][0].sources)
    lookup = question.plan[0][0]
    said = [
        d for d in frozen.documents for s in d.states if (s.subject, s.relation) == (lookup.subject, lookup.relation)
    ]
    assert len(said) > 1
    assert answer_from(said, question) in question.answers


def test_the_first_passage_reader_is_not_blind(frozen: World) -> None:
    ones = [q for q in frozen.questions if q.type == "chain1"]
    assert sum(first_passage_answer(frozen, q) in q.answers for q in ones) / len(ones) > 0.5
