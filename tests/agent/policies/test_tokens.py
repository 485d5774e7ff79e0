"""Text and ids agree, whatever the text says and however the ids are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from agent.evidence import Passage
from agent.policies.checkpoint import open_checkpoint
from agent.policies.tokens import Codec, split_tags, whole
from agent.protocols import protocol_named, protocol_names
from agent.sanitize.sanitize import sanitize
from tests.agent.policies.engine import ENGINE

CODEC: Codec = open_checkpoint(ENGINE).codec
TRAINERS = Tokenizer.from_file(str(ENGINE / "tokenizer.json"))
TAGS = [token for token in CODEC.tokens if token.startswith(("<", "</")) and token.endswith(">") and len(token) > 3]
CONTROL = {number for tag in TAGS if (number := CODEC.id_of(tag)) is not None}
assert len(TAGS) == 20  # nine pairs of tags, <pad> and <eos>

hostile = st.lists(
    st.sampled_from([*TAGS, "<", ">", "/", "answer", "é", "🌍", " ", "\n", "\ud800"]) | st.text(max_size=5)
).map("".join)


@given(hostile)
def test_text_alone_never_becomes_a_control_token(text: str):
    ids = CODEC.encode(text)
    assert CONTROL.isdisjoint(ids)
    assert CODEC.decode(ids) == whole(text)


@given(hostile, st.sets(st.sampled_from(TAGS), max_size=4))
def test_only_the_named_tags_become_control_tokens(text: str, tags: set[str]):
    ids = CODEC.encode(text, tags=tags)
    expected = [piece for piece, is_tag in split_tags(text, tags) if is_tag]
    assert [CODEC.tokens[number] for number in ids if number in CONTROL] == expected


@given(
    st.lists(
        st.sampled_from(TAGS[2:])
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), max_size=8)
    )
)
def test_with_all_tags_the_ids_are_the_ones_of_training(pieces: list[str]):
    text = "".join(pieces)
    assert list(CODEC.encode(text, tags=TAGS[2:])) == TRAINERS.encode(text, add_special_tokens=False).ids


@given(st.lists(st.integers(2, len(CODEC.tokens) - 1)))
def test_a_stream_gives_the_text_of_all_its_ids(ids: list[int]):
    stream = CODEC.stream()
    assert "".join([*(stream.feed(number) for number in ids), stream.end()]) == CODEC.decode(ids)


@given(st.text(min_size=1))
def test_a_character_appears_when_it_is_whole(text: str):
    stream = CODEC.stream()
    for number in CODEC.encode(text):
        assert "\ufffd" not in stream.feed(number).replace("\ufffd" if "\ufffd" in text else "", "")
    assert stream.end() == ""


def test_the_end_of_the_turn_has_no_text():
    assert CODEC.decode([CODEC.eos]) == ""


@pytest.mark.parametrize("name", protocol_names())
@given(title=hostile, text=hostile)
def test_a_sanitized_passage_brings_no_tag_but_the_wrapper(name: str, title: str, text: str):
    protocol = protocol_named(name)
    marks = [mark for role in protocol.tags for mark in (protocol.opening(role), protocol.closing(role))]
    passage = Passage(
        id="p", source="web", title=sanitize(title, protocol.tag_names), text=sanitize(text, protocol.tag_names)
    )
    ids = CODEC.encode(protocol.wrap([protocol.show(passage)]), tags=marks)
    control = [CODEC.tokens[number] for number in ids if number in CONTROL]
    wrapper = (protocol.opening("information"), protocol.closing("information"))
    assert control == [mark for mark in wrapper if CODEC.id_of(mark) is not None]
