"""Patterns over roles, compared with Python's own regular expressions."""

import re
from itertools import product
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.protocols import profile_names, protocol_named, protocol_names
from agent.protocols.shapes import MAX_CHARS, fits, shape_of

ROLES = ("thought", "search", "answer")
NAMES = st.sampled_from(ROLES).map(lambda role: f"{role} ")
PATTERNS = st.recursive(
    NAMES,
    lambda part: st.one_of(
        st.lists(part, max_size=3).map("".join),
        st.tuples(part, st.sampled_from("?*+")).map(lambda two: f"({two[0]}){two[1]}"),
        st.lists(part, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
    ),
    max_leaves=8,
)


def as_python_says(pattern: str, roles: tuple[str, ...]) -> bool:
    return re.fullmatch(pattern, "".join(f"{role} " for role in roles)) is not None


@given(PATTERNS, st.lists(st.sampled_from(ROLES), max_size=6).map(tuple))
def test_a_pattern_means_what_it_means_in_python(pattern: str, roles: tuple[str, ...]):
    assert not pattern or fits(pattern, roles) == as_python_says(pattern, roles)
    assert not pattern or fits(f"^{pattern}$", roles) == as_python_says(pattern, roles)


@pytest.mark.parametrize("name", [*protocol_names(), *profile_names()])
def test_the_shipped_patterns_mean_what_they_mean_in_python(name: str):
    pattern = protocol_named(name).well_formed
    for length in range(5):
        for roles in product(("thought", "search", "information", "merge", "answer"), repeat=length):
            text = "".join(f"{role} " for role in roles)
            assert fits(pattern, roles) == (re.search(pattern, text) is not None)


def test_an_empty_pattern_takes_everything():
    assert fits("", ("search", "search"))


@pytest.mark.parametrize("pattern", ["((thought )*)*merge ", "((thought )+)+merge ", "((thought |(thought )*))*merge "])
def test_no_pattern_takes_more_than_the_two_lengths_multiplied(pattern: str):
    def seconds(length: int) -> float:
        began = process_time()
        assert not fits(pattern, ["thought"] * length)
        return process_time() - began

    seconds(10)
    assert seconds(20_000) < 40 * max(seconds(2_000), 0.001)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(\w+ )*", "write names"),
        ("thought", "write names"),
        (".*", "write names"),
        ("(thought ", "never closed"),
        ("thought )", "closes nothing"),
        ("(thought )*?", "repeats a repetition"),
        ("* thought ", "repeats nothing|write names"),
        ("(" * 60 + "thought " + ")" * 60, "deep"),
        ("thought " * MAX_CHARS, "more than"),
    ],
)
def test_what_is_no_pattern_is_refused_with_what_there_is(pattern: str, why: str):
    with pytest.raises(ValueError, match=why):
        shape_of(pattern)
