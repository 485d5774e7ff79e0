import pytest

from agent.checks.verify import check_claim
from agent.evidence import Passage
from agent.trace import Claim


def checked(claim: str, page: str) -> str:
    passage = Passage(id="a", source="web", title="", text=page)
    return check_claim(Claim(text=claim, cites=(1,)), {1: [passage]}).check


@pytest.mark.parametrize(
    ("claim", "page"),
    [
        ("The bridge cost $40 million.", "The bridge cost £40 million."),
        ("Revenue of Acme was $3.2 billion in 2020.", "Acme said its revenue was €3.2 billion in 2020."),
        ("The temperature in Avar was 12 degrees.", "The temperature in Avar was -12 degrees."),
        ("The population of Avar is 5.", "The population of Avar is 5 million."),
        ("He studied at Washington.", "He studied at Washington State University."),
        ("He died in 44.", "He died in 44 BC."),
        ("The shop closes at 6 am.", "The shop closes at 6 pm."),
        ("The tower is under 90 metres high.", "The tower is over 90 metres high."),
        ("More than 90 people died.", "Fewer than 90 people died."),
        ("The castle was built before 1200.", "The castle was built after 1200."),
        ("Python 3.10 added the match statement.", "Python 3.1 added the match statement."),
        ("Version 2.1 fixes the bug.", "Version 2.10 fixes the bug."),
        ("Apollo 10 was the first mission to the Moon.", "Apollo 10 was the fourth mission to the Moon."),
        ("The second edition appeared in 2001.", "The first edition appeared in 2001."),
    ],
)
def test_another_amount_or_a_longer_name_is_not_what_the_claim_says(claim: str, page: str):
    assert checked(claim, page) in ("not_found", "contradicted")
    assert checked(page, page) == "verbatim"


@pytest.mark.parametrize(
    ("claim", "page"),
    [
        ("The bridge cost $40 million.", "The bridge cost $40 million, and the road cost £12 million."),
        ("He was born in the United States.", "He was born in the United States of America."),
        ("He was born in Paris.", "He was born in Paris, France, in 1900."),
        ("The tower is 90 metres high.", "The tower is over 90 metres high."),
        ("Between 1950 and 1960 he lived there.", "Between 1950 and 1960 he lived there."),
        ("He scored in the 84th minute.", "He scored in the 84th minute."),
        ("The room is 2.5 metres high.", "The room is 2.50 metres high."),
        ("It was Lina's first film.", "It was Lina's first film; her second film came in 1950."),
        ("The castle was built in 1200.", "The castle was built just before 1200."),
    ],
)
def test_what_is_left_out_beside_a_number_is_no_difference(claim: str, page: str):
    assert checked(claim, page) in ("verbatim", "close")


@pytest.mark.parametrize(
    ("claim", "page"),
    [
        ("The tower is 300 m tall.", "The tower is 300 metres tall."),
        ("The pool is 50 metres long.", "The Olympic pool is 50m long and 25m wide."),
        ("Acme earned $5m in 2020.", "In 2020, Acme earned $5 m."),
    ],
)
def test_m_behind_a_number_is_metres_and_behind_a_sum_million(claim: str, page: str):
    assert checked(claim, page) == "close"


def test_m_that_counts_something_is_million():
    assert checked("Avar has 5,600,000 inhabitants.", "Avar has 5.6m inhabitants.") == "close"
    assert checked("Acme earned $5,000,000.", "Acme earned $5m.") == "close"
    assert checked("The tower is 5 million metres tall.", "The tower is 5 m tall.") != "close"
