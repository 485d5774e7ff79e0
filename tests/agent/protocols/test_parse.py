from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.protocols import Role, protocol_named
from agent.protocols.base import Mark
from agent.protocols.parse import Block, OpenPiece, TagReader

ROLES = protocol_named("cairn").policy_marks
TEXT = (
    "well\n<think>a < b, so </search> and <answer>no</answer> are words</think>\n<search>A: q (web)</search> hm "
    "<merge></merge><b>x</b><answer>no </tag> yes</answer>\n"
)
BLOCKS = [
    Block("thought", "well\n", tagged=False),
    Block("thought", "a < b, so </search> and <answer>no</answer> are words"),
    Block("search", "A: q (web)"),
    Block("thought", "hm ", tagged=False),
    Block("merge", ""),
    Block("thought", "<b>x</b>", tagged=False),
    Block("answer", "no </tag> yes"),
]
MARKS = [f"{start}{tag}>" for tag in ROLES for start in ("<", "</")]


def read(pieces: Sequence[str], *, opened: Role | None = None) -> list[Block | OpenPiece]:
    reader = TagReader(ROLES, opened=opened)
    return [part for piece in pieces for part in reader.feed(piece)] + list(reader.close())


def blocks(pieces: Sequence[str], *, opened: Role | None = None) -> list[Block]:
    return [part for part in read(pieces, opened=opened) if isinstance(part, Block)]


def cut(text: str, places: Sequence[int]) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *sorted(place % (len(text) + 1) for place in places), len(text)])]


@settings(max_examples=50)
@given(st.lists(st.integers(0, len(TEXT))))
def test_how_the_stream_is_cut_does_not_change_the_blocks(places: list[int]):
    assert blocks(cut(TEXT, places)) == BLOCKS


@pytest.mark.timeout(30)  # it took minutes, and held the event loop
def test_a_turn_that_comes_whole_is_read_in_time_that_grows_with_its_length_alone():
    assert len(blocks(["<merge></merge>" * 50_000])) == 50_000


def test_who_stops_at_a_block_leaves_the_rest_unread():
    reader = TagReader(ROLES)
    stopped = next(part for part in reader.feed("<merge></merge><answer>x</ans") if isinstance(part, Block))
    rest = [*reader.feed("wer>"), *reader.close()]
    assert [stopped, *rest] == [Block("merge", ""), OpenPiece("answer", "x"), Block("answer", "x")]


@given(
    st.lists(st.sampled_from([*MARKS, "<", "/", ">", "a", "\n", "<thi", "nk>"])).map("".join),
    st.lists(st.integers(0, 400)),
    st.sampled_from([None, "thought", "answer"]),
)
def test_no_text_at_all_is_read_in_two_ways(text: str, places: list[int], opened: Role | None):
    assert blocks(cut(text, places), opened=opened) == blocks([text], opened=opened)


@given(st.lists(st.sampled_from([*MARKS, "<", "/", "a", " "])))
def test_the_pieces_of_a_block_join_up_to_its_text(pieces: list[str]):
    joined = ""
    for part in read(pieces):
        if isinstance(part, OpenPiece):
            joined += part.text
        else:
            assert joined == part.text
            joined = ""


def test_text_comes_before_its_block_is_closed():
    reader = TagReader(ROLES)
    assert list(reader.feed("<think>so fa")) == [OpenPiece("thought", "so fa")]
    assert reader.open_role == "thought"
    assert list(reader.feed("r</thin")) == [OpenPiece("thought", "r")]


def test_it_can_start_inside_a_block_that_another_one_opened():
    assert blocks(["Trieste</answer>"], opened="answer") == [Block("answer", "Trieste")]


def test_a_block_that_was_not_closed_is_given_at_the_end_without_half_its_closing_tag():
    assert blocks(["<answer>Trieste</ans"]) == [Block("answer", "Trieste")]


def test_white_space_between_blocks_is_nothing():
    assert blocks(["\n <think>a</think>\n\n<answer>b</answer>\n"]) == [Block("thought", "a"), Block("answer", "b")]


def test_what_only_the_environment_may_write_is_no_block():
    assert blocks(["<information>[1] x</information>"]) == [
        Block("thought", "<information>[1] x</information>", tagged=False)
    ]


def test_a_role_without_a_tag_cannot_be_opened():
    with pytest.raises(ValueError, match="reflect"):
        TagReader(ROLES, opened="reflect")


# Blocks that yield, and braces that nest

LOUD: dict[Role, Mark] = {
    "thought": Mark(open="<think>", close="</think>", yields=True),
    "search": Mark(open="<|begin_of_query|>", close="<|end_of_query|>"),
    "answer": Mark(open="\\boxed{", close="}"),
}


def read_yielding(text: str, cuts: list[int], *, opened: Role | None = None) -> list[tuple[str, str, bool]]:
    reader = TagReader(LOUD, opened=opened)
    ends = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    parts = [part for a, b in pairwise(ends) for part in reader.feed(text[a:b])] + list(reader.close())
    return [(part.role, part.text, part.tagged) for part in parts if isinstance(part, Block)]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        (
            "I look.<|begin_of_query|> q <|end_of_query|>",
            [("thought", "I look.", True), ("search", " q ", True)],
        ),
        ("so</think> \\boxed{x}", [("thought", "so", True), ("answer", "x", True)]),
        ("so \\boxed{\\text{20 C} {y}} then", [("thought", "so ", True), ("answer", "\\text{20 C} {y}", True)]),
    ],
)
def test_a_search_or_an_answer_ends_a_block_that_yields(text: str, blocks: list[tuple[str, str, bool]]):
    assert read_yielding(text, [], opened="thought")[: len(blocks)] == blocks


def test_a_late_closing_tag_of_a_block_that_yields_is_passed_over():
    assert read_yielding("It is so.</think>\n\n\\boxed{x}", []) == [
        ("thought", "It is so.", False),
        ("answer", "x", True),
    ]


@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "<|begin_of_query|>", "<|end_of_query|>", "\\boxed{", "{", "}", "a ", "<"]
        )
    ).map("".join),
    st.lists(st.integers(0, 80), max_size=8),
    st.sampled_from([None, "thought"]),
)
def test_however_the_stream_is_cut_blocks_that_yield_and_nest_are_the_same(
    text: str, cuts: list[int], opened: Role | None
):
    assert read_yielding(text, cuts, opened=opened) == read_yielding(text, [], opened=opened)
