"""Where a turn stops, whatever an engine gives: any tokens, in any batches, any number of them too many."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ContextFull, PolicyError
from agent.policies.base import Chunk, Sampling
from agent.policies.hub_form import open_hub_form
from agent.policies.token_context import Sampled, TokenContext
from tests.agent.policies.engine_case import CAIRN
from tests.shipped import HUB

CODEC = open_hub_form(str(HUB)).codec
EOS = CODEC.eos
WORDS = [n for n in range(2, len(CODEC.tokens)) if n not in CODEC.ends]
texts = st.lists(
    st.sampled_from([*CAIRN.all_marks, " ", "\n", "é", "🌍", "Lurnia", "1957"])
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"), max_size=6)
).map("".join)


@dataclass
class Canned:
    """An engine that gives these ids, in batches of these sizes, and does not know when to stop."""

    ids: Sequence[int]
    sizes: Sequence[int] = (1,)
    fails: bool = False
    given: int = 0
    closed: int = 0
    requested: list[int] = field(default_factory=list[int])

    async def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        self.requested.append(max_tokens)
        try:
            turn = 0
            while self.given < len(self.ids):
                size = self.sizes[turn % len(self.sizes)]
                batch = self.ids[self.given : self.given + size]
                self.given += size
                turn += 1
                yield [(number, -number / 1000) for number in batch]
            if self.fails:
                raise PolicyError("the engine is gone")
        finally:
            self.closed += 1


def spelled(text: str, marks: bool) -> tuple[int, ...]:
    """The ids of a text, with or without control tokens for marks."""
    return CODEC.encode(text, tags=CAIRN.all_marks if marks else ())


def context(engine: Canned, limit: int = 2048) -> TokenContext:
    return TokenContext(engine, CODEC, CAIRN, "Who?", limit=limit)


def said(one: TokenContext, stop: Sequence[str] = (), *, max_tokens: int = 1000) -> list[Chunk]:
    async def turn() -> list[Chunk]:
        return [chunk async for chunk in one.generate(Sampling(), stop=stop, max_tokens=max_tokens)]

    return asyncio.run(turn())


def test_a_stop_text_that_looks_like_a_byte_of_the_vocabulary_is_a_text():
    said_whole = said(context(Canned(spelled("0 \u00c3 1", marks=False))), ["\u00c3"])
    assert "".join(chunk.text for chunk in said_whole) == "0 \u00c3"
    assert CODEC.id_of("\u00c3") is None


@given(texts, st.booleans(), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_the_turn_ends_with_the_token_that_completes_a_stop_text(
    text: str, marks: bool, sizes: list[int], data: st.DataObject
):
    ids = spelled(text, marks)
    text = CODEC.decode(ids)
    start = data.draw(st.integers(0, len(text)))
    stop = text[start : data.draw(st.integers(start, len(text)))]
    engine = Canned(ids, sizes)
    one = context(engine)
    chunks = said(one, [stop] if stop else [])
    expected = next((n for n in range(len(ids) + 1) if stop and stop in CODEC.decode(ids[:n])), len(ids))
    assert engine.closed == 1
    assert len(one.segments) == (2 if expected else 1)
    if not expected:
        return
    segment = one.segments[-1]
    assert segment.ids == ids[:expected]
    assert segment.logprobs == tuple(-number / 1000 for number in ids[:expected])
    assert segment.text == CODEC.decode(segment.ids or ()) == "".join(chunk.text for chunk in chunks)
    assert one.tokens == len(one.segments[0].ids or ()) + expected
    assert not any(chunk.cut for chunk in chunks)


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.lists(st.sampled_from(WORDS), max_size=5), st.integers(1, 20))
def test_nothing_behind_the_end_of_a_turn_or_behind_its_limit_is_kept(before: list[int], behind: list[int], size: int):
    one = context(Canned([*before, EOS, *behind], [size]))
    said(one)
    assert one.segments[-1].ids == (*before, EOS)
    assert one.ended_turn
    for limit in range(1, len(before) + 1):
        cut = context(Canned([*before, EOS, *behind], [size]))
        chunks = said(cut, max_tokens=limit)
        assert cut.segments[-1].ids == tuple(before[:limit])
        assert [chunk.cut for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
        assert not cut.ended_turn


def test_a_token_that_goes_on_behind_the_stop_is_kept_whole():
    token = next(n for n in WORDS if CODEC.decode([n]).strip() and len(CODEC.decode([n])) > 3)
    text = CODEC.decode([token])
    one = context(Canned([token, token]))
    chunks = said(one, [text[:2]])
    assert (one.segments[-1].ids, one.segments[-1].text) == ((token,), text)
    assert [chunk.text for chunk in chunks] == [text]


def test_half_a_character_at_the_end_has_a_mark_and_the_ids_stay():
    ids = CODEC.encode("🌍")
    assert len(ids) > 1
    one = context(Canned(ids[:-1]))
    assert "".join(chunk.text for chunk in said(one)) == one.segments[-1].text == "\ufffd"
    assert one.segments[-1].ids == ids[:-1]


def test_an_engine_that_fails_leaves_what_it_gave():
    one = context(Canned(WORDS[:5], [2], fails=True))
    with pytest.raises(PolicyError, match="gone"):
        said(one)
    assert one.segments[-1].ids == tuple(WORDS[:5])


def test_an_engine_gets_no_more_tokens_to_sample_than_fit():
    engine = Canned(WORDS[:50])
    one = context(engine, limit=40)
    room = 40 - one.tokens
    said(one)
    assert engine.requested == [room]
    assert one.tokens == 40
    with pytest.raises(ContextFull, match="is full"):
        said(one)


def test_what_a_fork_hears_the_original_does_not():
    engine = Canned(WORDS[:8])
    one = context(engine)
    fork = one.fork()
    said(fork, max_tokens=3)
    fork.append("x", by="environment")
    assert [len(each.segments) for each in (one, fork)] == [1, 3]
    assert one.tokens < fork.tokens
    said(one, max_tokens=2)
    assert [len(each.segments) for each in (one, fork)] == [2, 3]


def test_a_turn_that_was_sampled_before_can_be_repeated_id_by_id():
    first = context(Canned([*WORDS[:2], EOS], [1]))
    said(first)
    again = context(Canned([], [1]))
    again.repeat(first.segments[-1])
    assert (again.segments, again.tokens, again.ended_turn) == (first.segments, first.tokens, True)
    full = context(Canned([], [1]), limit=again.tokens - 1)
    with pytest.raises(ContextFull, match="3 tokens more do not fit"):
        full.repeat(first.segments[-1])
    assert len(full.segments) == 1
