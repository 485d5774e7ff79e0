import pytest

from agent.checks import check_claim
from agent.evidence import Passage
from agent.trace import Claim
from tests.agent.checks import more_real_text, real_text
from tests.agent.checks.real_text import Example

EXAMPLES = (*real_text.EXAMPLES, *more_real_text.EXAMPLES)
MISSED = {
    "Neil Armstrong landed on the Moon on 20 July 1969.",  # two sentences state it, each a half
    "Pablo Picasso painted Guernica in 1937.",  # "he" is the one whom the sentence before names last
}
"""True, and not found: what the rules cannot see."""


def check(example: Example) -> str:
    passage = Passage(id="1", source="wiki", title=example.title, text=example.text, number=1)
    return check_claim(Claim(text=example.claim, cites=(1,)), {1: (passage,)}).check


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.claim)
def test_a_claim_about_real_text_is_found_where_the_text_says_it(example: Example):
    found = example.found and example.claim not in MISSED
    assert (check(example) in ("verbatim", "close")) is found


def test_there_are_enough_examples_of_both():
    assert sum(example.found for example in EXAMPLES) >= 70
    assert sum(not example.found for example in EXAMPLES) >= 50
