"""Moves are read from whatever a model writes, and no text breaks or stalls the reader."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.loop.plain import plain_protocol
from agent.plan import parse_plan
from agent.policies.ladder.moves import AnswerMove, CitedSentence, SearchMove, can_spell, queries_of, spelled
from agent.policies.ladder.reading import move_in
from agent.policies.ladder.replies import Call, ModelReply, NoMove
from agent.protocols import protocol_named

OURS = ("cairn", "multisearch", "dag", "evidence", "reflect", "kg")


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ('{"name": "search", "parameters": {"queries": ["a b", "c d"]}}', ("a b", "c d")),
        ('{"name": "search", "arguments": "{\\"query\\": \\"a b\\"}"}', ("a b",)),
        ("{'action': 'search', 'queries': ['a b']}", ("a b",)),
        ('I will search. {"queries": [{"query": "a b"}]} Wait.', ("a b",)),
        ("<search>\n- a b\n2. c d\n</search>", ("a b", "c d")),
        ("<search>a b", ("a b",)),
        ("SEARCH: a b\nSEARCH: c d", ("a b", "c d")),
    ],
)
def test_a_search_in_many_forms(text: str, queries: tuple[str, ...]):
    assert move_in(ModelReply(text)) == SearchMove(queries)


@pytest.mark.parametrize(
    "text",
    [
        '{"action": "answer", "answer": "Bergen", "evidence": [{"claim": "Born in Bergen.", "passages": [2]}]}',
        "<evidence>\n- Born in Bergen. [2]\n</evidence>\n<answer>Bergen</answer>",
        '```json\n{"answer": "Bergen", "evidence": ["Born in Bergen. [2]"],}\n```',
    ],
)
def test_an_answer_with_its_evidence_in_many_forms(text: str):
    assert move_in(ModelReply(text)) == AnswerMove("Bergen", (CitedSentence("Born in Bergen.", (2,)),))


def test_a_call_counts_before_the_text_beside_it():
    reply = ModelReply("<answer>no</answer>", calls=[Call("search", '{"queries": ["a b"]}')])
    assert move_in(reply) == SearchMove(("a b",))


@pytest.mark.parametrize(
    "text",
    [
        *("{" * 20_000, '{"a":' * 5_000, "<search>" * 3_000, "[1]" * 7_000, '"' * 20_000),
        *("x" + "\n" * 19_000 + "y", "search: a" + " " * 19_000 + "b"),
    ],
)
def test_text_that_is_made_for_slow_readers_is_read_at_once(text: str):
    began = time.perf_counter()
    with suppress(NoMove):
        move_in(ModelReply(text))
    assert time.perf_counter() - began < 2


@given(st.text(max_size=400))
def test_any_text_is_a_move_or_none(text: str):
    with suppress(NoMove):
        assert isinstance(move_in(ModelReply(text)), SearchMove | AnswerMove)


@pytest.mark.parametrize("name", OURS)
@given(texts=st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=4))
def test_every_search_can_be_spelled_in_every_protocol_of_ours(name: str, texts: list[str]):
    protocol = protocol_named(name)
    assert can_spell(protocol)
    assert not can_spell(plain_protocol(""))  # it neither searches nor marks its answer
    queries = queries_of(texts, most=protocol.max_queries)
    if queries:
        text = spelled(SearchMove(queries), protocol)
        inner = text.removeprefix(protocol.opening("search")).removesuffix(protocol.closing("search"))
        plan = parse_plan(inner, protocol=protocol, sources=("all",))
        assert 1 <= len(plan.nodes) <= len(queries)
