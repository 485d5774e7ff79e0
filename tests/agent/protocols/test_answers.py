"""What a box in an answer holds, also of hostile text."""

import sys
from types import FrameType
from typing import Any

import pytest

from agent.protocols import answers, protocol_named, protocol_names
from agent.protocols.answers import answer_in

BOXED = next(protocol for protocol in map(protocol_named, protocol_names()) if protocol.answer_in != "text")


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (r"\boxed{Rome}", "Rome"),
        (r"\boxed{Rome} or \boxed{ Oslo }.", "Oslo"),
        (r"\boxed{Rome} or \boxed{Oslo", "Rome"),
        (r"\boxed{a \boxed{b} c}", "b"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\}\{}", r"\}\{"),
        (r"\\boxed{Rome}", "Rome"),
        (r"} { \boxed{Rome}", "Rome"),
        (r"\boxed{}", ""),
        (r"\boxed{Rome", None),
        ("Rome", "Rome"),
        ("Rome\nor Oslo", None),
    ],
)
def test_the_last_closed_box_is_the_answer(text: str, held: str | None):
    assert answer_in(text, BOXED) == held


@pytest.mark.parametrize("unit", ["\\boxed{", "\\boxed{{", "\\boxed{\\", "}\\boxed{", "{", "\\"])
def test_the_work_grows_with_the_text_and_not_with_its_square(unit: str):
    """Counted in lines that run: twice the text is twice of them."""
    once, twice = lines_of(unit * 200), lines_of(unit * 400)
    assert twice <= 2 * once + 50


def lines_of(text: str) -> int:
    """How many lines of agent/protocols/answers.py run for a text."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename == answers.__file__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        answers.answer_in(text, BOXED)
    finally:
        sys.settrace(before)
    return count
