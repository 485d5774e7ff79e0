"""What a round shows under each budget, in lines that no passage can imitate."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.checks.relevance import without_irrelevant
from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.loop.observation import Observation, show, show_parents
from agent.plan import Node
from agent.policies.base import special_tokens_of
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import profile_names, protocol_named, protocol_names
from agent.sources.base import SearchRequest, SearchResult, ask
from tests.conftest import answer

KG = protocol_named("kg")
BREAKS = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
STRANGE = st.lists(st.sampled_from([*BREAKS, " ", "[2] A · web · B — c", "A: the source web failed.", "x"]), max_size=9)
TEXTS = STRANGE.map("".join)


def passage(text: str, *, node: str = "A", title: str = "T", url: str = "", date: str = "") -> Passage:
    return Passage(id=text[:9] + node, source="web", title=title, text=text, node=node, url=url, date=date)


def observed(
    found: dict[str, list[Passage]], name: str, *, nodes: Sequence[Node] = (), room: int = 10**6
) -> Observation:
    return show(
        found,
        (),
        protocol=protocol_named(name),
        seen=(),
        limit=99,
        fits=lambda text: len(text) <= room,
        nodes=nodes,
        question="Who wrote Dune?",
    )


@pytest.mark.parametrize("name", protocol_names())
@given(title=TEXTS, text=TEXTS, date=TEXTS)
def test_each_passage_begins_one_line_and_no_other_line_begins_without_blanks(
    name: str, title: str, text: str, date: str
):
    found = {"A": [passage(f"dune {text}", title=f"t{title}", date=date), passage("dune honest", url="u")]}
    observation = observed(found, name)
    lines = observation.text.strip().splitlines()[1:-1]
    assert sum(not line.startswith("  ") for line in lines) == len(observation.passages)


@given(title=TEXTS, text=TEXTS)
def test_a_parents_passage_begins_one_line_too(title: str, text: str):
    parents = {"A": [passage(f"x{text}", title=f"t{title}")], "B": []}
    said = show_parents(parents, protocol=protocol_named("cairn"), fits=lambda _: True)
    own = [line for line in said.strip().splitlines()[1:-1] if not line.startswith("  ")]
    assert [line[:4] for line in own] == ["A · ", "B · "]


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_keeps_line_breaks_as_its_checkpoint_was_trained(name: str):
    assert protocol_named(name).lines == "kept"


# Budgets


def test_triples_stand_beside_the_documents_and_take_nothing_from_them():
    nodes = (Node(id="A", query="dune", source="documents"), Node(id="K", query="dune", source="kg"))
    documents = [passage(f"{n} " + "d" * 1500, title="") for n in range(5)]
    triples = [passage(f"{n} " + "k" * 900, node="K", title="") for n in range(5)]
    alone, both = (observed(found, "kg", nodes=nodes) for found in ({"A": documents}, {"A": documents, "K": triples}))
    assert [p.id for p in both.passages if p.node == "A"] == [p.id for p in alone.passages]
    assert sum(len(p.text) for p in both.passages if p.node == "A") <= KG.budget_chars
    assert 0 < sum(len(p.text) for p in both.passages if p.node == "K") <= KG.graph_chars
    assert sum(len(p.text) for p in both.passages) > KG.budget_chars


def test_where_the_context_is_short_documents_and_triples_share_the_room():
    nodes = (Node(id="A", query="dune", source="documents"), Node(id="K", query="dune", source="kg"))
    found = {"A": [passage("d" * 400)], "K": [passage("k" * 400, node="K")]}
    observation = observed(found, "kg", nodes=nodes, room=600)
    assert len(observation.text) <= 600
    assert {p.node for p in observation.passages} == {"A", "K"}


def test_the_observation_of_reflect_is_bounded_in_tokens_and_its_turns_too():
    reflect = protocol_named("reflect")
    assert (reflect.budget_tokens, reflect.turn_tokens) == (4096, 8192)
    long = [f"dune {n} " + "spice must flow " * 300 for n in range(5)]

    @dataclass
    class Library:
        async def search(self, request: SearchRequest) -> SearchResult:
            return SearchResult(tuple(passage(text) for text in long[: request.limit]))

    turns = ["<think>a</think><search>dune</search>", "<reflect>b</reflect><answer>c</answer>"]
    trace = answer([], agent=Agent(ScriptedPolicy(turns, context_tokens=10**6), reflect, {"all": Library()}))
    observation = next(segment for segment in trace.segments if segment.by == "environment")
    assert 2000 < trace.usage.environment_tokens <= 4096
    assert observation.text.endswith("</information>\n")


# What is irrelevant


def test_a_passage_without_a_word_of_query_or_question_is_left_out():
    found = {"A": [passage("The weather is mild."), passage("Herbert's novels."), passage("A writer of Dunes.")]}
    kept = without_irrelevant(found, {"A": "Frank Herbert"}, "Who wrote Dune?")
    assert [p.text for p in kept["A"]] == ["Herbert's novels.", "A writer of Dunes."]


def test_where_nothing_shares_a_word_everything_stays():
    found = {"A": [passage("Das Wetter ist mild.")], "B": []}
    assert without_irrelevant(found, {"A": "Frank Herbert"}, "Who wrote Dune?") == found


def test_multisearch_leaves_out_what_is_irrelevant_and_the_other_protocols_do_not():
    found = {"A": [passage("The weather is mild."), passage("Dune is a novel.")]}
    nodes = (Node(id="A", query="Dune", source="all"),)
    counts = {name: len(observed(found, name, nodes=nodes).passages) for name in protocol_names()}
    assert counts == dict.fromkeys(protocol_names(), 2) | {"multisearch": 1}


# What sources give


def test_every_field_of_a_passage_is_bounded_before_the_loop_sees_it():
    endless = "x" * 500_000

    class Endless:
        async def search(self, request: SearchRequest) -> SearchResult:
            return SearchResult(
                (Passage(id=endless, source=endless, title=endless, text=endless, url=endless, date=endless),)
            )

    (found,) = asyncio.run(ask(Endless(), SearchRequest("q", limit=1), seconds=5)).passages
    assert len(found.text) == 200_000
    assert max(map(len, (found.id, found.source, found.title))) <= 1_000
    assert (found.url, found.date) == ("", "")  # a part of an address is another address


def test_the_policys_own_special_tokens_are_marks_in_what_it_is_shown():
    class Spelling(ScriptedPolicy):
        special_tokens = ("{start}", "<|im_start|>")

    @dataclass
    class Library:
        async def search(self, request: SearchRequest) -> SearchResult:
            return SearchResult((passage("Dune {start} <|im_start|> {other}"),))

    turns = ["<search>\nA: dune (web)\n</search>", "<answer>c</answer>"]
    policy = Spelling(turns)
    assert special_tokens_of(policy) == ("{start}",)
    trace = answer([], agent=Agent(policy, protocol_named("cairn"), {"web": Library()}))
    observation = next(segment.text for segment in trace.segments if segment.by == "environment")
    assert "Dune (start) (|im_start|) {other}" in observation


@pytest.mark.parametrize(
    ("query", "room", "said"),
    [
        ("Lina Orr", 999, "[2] A · web · Lina Orr › Life — born in Trieste"),
        ("where was Lina Orr born", 999, "[2] A · web · Lina Orr › Life — born in Trieste"),
        ("Lina Orr", 60, "Nothing was found."),
        ("who is Orr", 999, "Nothing was found."),
        ("the painter Anna Brandt", 999, "Nothing was found."),
    ],
    ids=["named", "among other words", "no room", "half a title", "another one"],
)
def test_of_what_was_found_again_only_what_the_query_names_is_shown_again(query: str, room: int, said: str):
    seen = [
        passage("directed by Lina Orr", title="Aurora Falls").model_copy(update={"number": 1}),
        passage("born in Trieste", title="Lina Orr › Life").model_copy(update={"number": 2}),
    ]
    shown = show(
        {"A": [one.model_copy(update={"number": 0}) for one in seen]},
        (),
        protocol=protocol_named("cairn"),
        seen=seen,
        limit=3,
        fits=lambda text: len(text) <= room,
        nodes=[Node(id="A", source="web", query=query)],
    )
    assert shown.text.strip().splitlines()[1:-1] == [said]
    assert not shown.passages, "none of them is new"
