"""Signs and letters of other writings: what differs by them alone is another statement."""

import pytest

from agent.checks import check_claim
from agent.evidence import Passage
from agent.trace import Claim


def check(claim: str, passage: str) -> str:
    shown = {1: (Passage(id="1", source="web", title="", text=passage, number=1),)}
    return check_claim(Claim(text=claim, cites=(1,)), shown).check


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The engine is written in C#.", "The engine is written in C++."),
        ("The engine is written in C.", "The engine is written in C++."),
        ("The engine is written in C++.", "The engine is written in C."),
        ("The limit is ≥ 5 volts.", "The limit is ≤ 5 volts."),
        ("It needs Python >3 and <4.", "It needs Python <3 and >4."),
        ("The cloud has 10⁶ stars.", "The cloud has 10⁹ stars."),
        ("Its mass is 2 × 10³⁰ kg.", "Its mass is 2 × 10³³ kg."),
        ("The war lasted 2½ years.", "The war lasted 2¼ years."),
        ("Here x = y for all values.", "Here x ≠ y for all values."),
        ("The patient got A+ blood.", "The patient got A− blood."),
        ("The share fell by €5.", "The share fell by ¥5."),
        ("It grew by 5%.", "It grew by 5‰."),
        ("彼はパリで生まれた。", "彼はバリで生まれた。"),
        ("かぎを持っている。", "かきを持っている。"),
        ("राम ने मीना को देखा।", "राम ने मोना को देखा।"),
        ("นี่คือไม้", "นี่คือไม่"),
    ],
)
def test_what_differs_by_a_sign_or_a_mark_is_not_supported(claim: str, passage: str):
    assert check(claim, passage) in ("not_found", "contradicted")
    assert check(claim, claim) == "verbatim"
    assert check(passage, passage) == "verbatim"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("She was born in Zürich in 1981.", "She was born in Zu\u0308rich in 1981."),
        ("She was born in Zu\u0308rich in 1981.", "She was born in Zurich in 1981."),
        ("The engine is written in C++", "The engine is written in C++, and its tools in C#."),
        ("Here x=y for all values.", "Here x = y for all values."),
        ("It has 80 rooms.", "It has 80+ rooms."),
        ("It has 5 volts.", "It has ≥5 volts."),
        ("y is even.", "If x = y is even, then so is x."),
        ("It is written in C.", "# It is written in C.\n\nMore of it is written in C++."),
        ("ناقص", "نَاقِص"),
        ("กรุงเทพ", "กรุงเทพเป็นเมืองหลวง"),
    ],
)
def test_what_says_the_same_with_other_signs_around_it_is_verbatim(claim: str, passage: str):
    assert check(claim, passage) == "verbatim"
