"""One turn of a chat model: however the server cuts it, the same text comes out."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent.policies.openai_chat import ChatTurn
from agent.protocols import TextProtocol, protocol_named
from agent.protocols.parse import Block, TagReader

CAIRN = protocol_named("cairn")
marks = ["<think>", "</think>", "<search>", "</search>", "<answer>", "</answer>", "</thi", "<", "q", "\n"]
strange = st.lists(st.sampled_from(marks)).map("".join)


def spoken(protocol: TextProtocol, reasoning: list[str], content: list[str]) -> tuple[ChatTurn, str]:
    turn = ChatTurn(protocol, protocol.stop_texts)
    given = "".join([*map(turn.think, reasoning), *map(turn.say, content), turn.end(natural=True)])
    return turn, given


def cut(text: str, places: list[int]) -> list[str]:
    at = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


@given(strange, strange, st.lists(st.integers(0, 99)), st.lists(st.integers(0, 99)))
def test_however_it_is_cut_the_turn_is_the_same(
    reasoning: str, content: str, at_reasoning: list[int], at_content: list[int]
):
    whole, _ = spoken(CAIRN, [reasoning], [content])
    parted, given = spoken(CAIRN, cut(reasoning, at_reasoning), cut(content, at_content))
    assert (parted.text, parted.content, parted.stopped) == (whole.text, whole.content, whole.stopped)
    assert given == parted.text


@given(strange, strange)
def test_reasoning_is_one_thought_and_nothing_else(reasoning: str, content: str):
    turn, _ = spoken(CAIRN, [reasoning], [content])
    reader = TagReader(CAIRN.policy_marks)
    read = [part for part in [*reader.feed(turn.text), *reader.close()] if isinstance(part, Block)]
    alone = TagReader(CAIRN.policy_marks)
    expected = [part for part in [*alone.feed(turn.content), *alone.close()] if isinstance(part, Block)]
    assert read[1 if reasoning else 0 :] == expected
    if reasoning:
        assert read[0] == Block("thought", reasoning.replace("</think>", "(/think)"))


@given(strange)
def test_nothing_stands_behind_the_first_stop_text(content: str):
    turn, _ = spoken(CAIRN, [], [content])
    ends = [turn.content.find(mark) + len(mark) for mark in CAIRN.stop_texts if mark in turn.content]
    assert not ends or min(ends) == len(turn.content)


def test_a_protocol_without_thoughts_leaves_the_reasoning_out():
    plain = TextProtocol(name="chat", prompt="{question}", instructions="", tags={}, plan="queries", stops=())
    turn, given = spoken(plain, ["hidden"], ["Hello."])
    assert given == "Hello."
    assert turn.text == "Hello."
