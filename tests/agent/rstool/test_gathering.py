"""A whole rollout whose evidence is given away, and the same as a function tool."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import PolicyError, QuestionError, SetupError
from agent.loop.agent import Agent
from agent.loop.budgets import Budgets, Effort
from agent.policies.scripted import ScriptedPolicy
from agent.rstool import (
    EvidenceBundle,
    SizeBudget,
    agent_for,
    arguments_schema,
    call_tool,
    gather,
    tool_definition,
)
from agent.settings import CairnSettings
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.sources.fuse import FusedSource
from agent.world import load_world
from tests.conftest import ANSWER_TURN, PLAN_TURN, Broken, Echo, Hanging, make_agent


def bounded(scene: Awaitable[EvidenceBundle]) -> EvidenceBundle:
    async def run() -> EvidenceBundle:
        async with asyncio.timeout(20):
            return await scene

    return asyncio.run(run())


def test_a_rollout_becomes_a_bundle():
    bundle = bounded(gather("Who wrote Dune?", agent=make_agent([PLAN_TURN, ANSWER_TURN])))
    assert bundle.outcome == "found"
    assert [claim.text for claim in bundle.claims] == ["Frank Herbert wrote Dune."]
    assert [source.id for source in bundle.sources] == ["web:who wrote Dune"]
    assert [(attempt.source, attempt.found) for attempt in bundle.tried] == [("web", 1), ("news", 1)]
    assert bundle.answer == "Frank Herbert"
    assert bundle.usage.searches == 2
    assert bundle.trace_id
    assert bundle.versions["cairn"]


def test_a_source_that_failed_is_among_what_was_tried():
    sources = {"web": Echo(), "news": Broken(), "all": Echo("all")}
    bundle = bounded(gather("q", agent=make_agent([PLAN_TURN, ANSWER_TURN], sources=sources)))
    assert [(attempt.kind, attempt.failure) for attempt in bundle.failures] == [("upstream", "no route")]


class Nothing:
    """A source that has nothing."""

    async def search(self, request: SearchRequest) -> SearchResult:
        return SearchResult()


EVERYWHERE = "<search>who wrote Dune</search>"
UNKNOWN = "<answer>I do not know</answer>"


def test_where_one_source_behind_all_failed_and_the_other_found_nothing_the_bundle_is_a_failed_one():
    parts: dict[str, Source] = {"web": Broken(), "corpus": Nothing()}
    sources = parts | {"all": FusedSource(parts)}
    bundle = bounded(gather("q", agent=make_agent([EVERYWHERE, UNKNOWN], sources=sources)))
    assert bundle.outcome == "failed"
    assert [(attempt.source, attempt.found, attempt.failure) for attempt in bundle.tried] == [
        ("all", 0, "web: no route; corpus found nothing")
    ]
    assert "The search failed: no search was answered. Searched: 'who wrote Dune' in all (web: no route;" in (
        bundle.why_empty
    )


def test_what_failed_behind_all_while_others_found_something_is_among_what_was_tried():
    parts: dict[str, Source] = {"web": Broken(), "corpus": Echo("corpus")}
    sources = parts | {"all": FusedSource(parts)}
    bundle = bounded(gather("q", agent=make_agent([EVERYWHERE, UNKNOWN], sources=sources)))
    assert (bundle.outcome, bundle.failures) == ("empty", ())
    assert [(attempt.found, attempt.failure, attempt.lost) for attempt in bundle.tried] == [(1, "", ("web",))]
    assert "> who wrote Dune (all; 1 found, web failed)" in bundle.to_prompt()


def test_an_honest_empty_bundle_says_what_was_tried():
    sources: dict[str, Source] = {"web": Nothing(), "news": Broken(), "all": Nothing()}
    bundle = bounded(gather("q", agent=make_agent([PLAN_TURN, UNKNOWN], sources=sources)))
    assert bundle.outcome == "empty"
    assert [(attempt.query, attempt.found, attempt.failure) for attempt in bundle.tried] == [
        ("who wrote Dune", 0, ""),
        ("when was Dune published", 0, "no route"),
    ]
    assert [attempt.source for attempt in bundle.failures] == ["news"]
    assert "> who wrote Dune (web; 0 found)" in bundle.to_prompt()
    assert "'when was Dune published' in news (no route)" in bundle.why_empty


def test_a_bundle_without_claims_of_searches_that_all_failed_is_a_failed_one():
    sources: dict[str, Source] = {"web": Broken(), "news": Broken(), "all": Echo("all")}
    bundle = bounded(gather("q", agent=make_agent([PLAN_TURN, UNKNOWN], sources=sources)))
    assert (bundle.outcome, len(bundle.failures)) == ("failed", 2)
    assert bundle.why_empty.startswith("The search failed: no search was answered. Searched: ")


def test_an_engine_that_fails_makes_a_bundle_that_says_so():
    bundle = bounded(gather("q", agent=make_agent([PolicyError("no one listens")])))
    assert (bundle.outcome, bundle.ended.reason, bundle.ended.detail) == ("failed", "engine", "no one listens")


def test_an_answer_without_a_search_brings_no_evidence():
    bundle = bounded(gather("q", agent=make_agent(["<answer>x</answer>"])))
    assert (bundle.outcome, bundle.answer, bundle.tried) == ("empty", "x", ())


def test_the_budget_is_kept():
    agent = make_agent([PLAN_TURN, ANSWER_TURN])
    assert bounded(gather("q", agent=agent, budget=SizeBudget(chars=600))).size.max_chars == 600


@pytest.mark.parametrize("question", ["", "  ", "x" * 20_001])
def test_a_question_that_cannot_be_used_is_an_error(question: str):
    with pytest.raises(QuestionError):
        bounded(gather(question, agent=make_agent([])))


def test_who_leaves_cancels_the_searches():
    async def scene() -> None:
        source = Hanging()
        agent = make_agent([PLAN_TURN], sources=dict.fromkeys(("web", "news", "all"), source))
        gathering = asyncio.create_task(gather("q", agent=agent))
        await source.requested.wait()
        gathering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gathering

    asyncio.run(scene())


def test_an_agent_of_ones_own_stays_open_and_one_that_was_built_is_closed(monkeypatch: pytest.MonkeyPatch):
    closed: list[bool] = []

    class Closing(ScriptedPolicy):
        async def aclose(self) -> None:
            closed.append(True)

    agent = make_agent([])
    mine = Agent(Closing([PLAN_TURN, ANSWER_TURN]), agent.protocol, agent.sources)
    bounded(gather("q", agent=mine))
    assert closed == []

    def build(settings: CairnSettings) -> Agent:
        return mine

    monkeypatch.setattr("agent.build.agent.build_agent", build)
    bounded(gather("q", settings=CairnSettings()))
    assert closed == [True]


def test_settings_that_cannot_be_used_are_an_error():
    with pytest.raises(SetupError):
        bounded(gather("q", settings=CairnSettings(policy="openai")))


def test_an_agent_and_settings_at_once_are_refused():
    with pytest.raises(ValueError, match="not both"):
        bounded(gather("q", agent=make_agent([]), settings=CairnSettings()))


def test_the_shipped_agent_gives_evidence_of_the_little_world():
    question = next(one for one in load_world("test-v2").questions if one.type == "chain1")
    bundle = bounded(gather(question.question, settings=CairnSettings(world="test-v2")))
    assert bundle.outcome == "found"
    assert {source.id for source in bundle.sources} & set(question.supporting)
    assert all(quote.text for claim in bundle.claims for quote in claim.quotes)


# What is requested


def test_only_the_named_sources_are_searched():
    sources = {name: Echo(name) for name in ("web", "news", "all")}
    bundle = bounded(gather("q", agent=make_agent([PLAN_TURN, ANSWER_TURN], sources=sources), sources=["News"]))
    assert [source.source for source in bundle.sources] == ["news"]
    bundle = bounded(gather("q", agent=make_agent([PLAN_TURN, ANSWER_TURN], sources=sources), sources=["all"]))
    assert [source.source for source in bundle.sources] == ["web"]


def test_a_source_or_protocol_that_is_not_there_is_an_error_that_names_those_that_are():
    with pytest.raises(QuestionError, match="no source 'x'; choose from: web, news"):
        bounded(gather("q", agent=make_agent([]), sources=["x"]))
    with pytest.raises(QuestionError, match="no protocol 'x'; choose from: cairn"):
        bounded(gather("q", agent=make_agent([]), protocol="x"))
    with pytest.raises(QuestionError, match="no protocol 'x'; choose from: cairn, "):
        bounded(gather("q", settings=CairnSettings(), protocol="x"))


def test_the_agent_of_the_named_protocol_searches():
    agents = {name: make_agent([PLAN_TURN, ANSWER_TURN], protocol=name) for name in ("cairn", "dag")}
    assert bounded(gather("q", agent=agents)).protocol == "cairn"
    assert bounded(gather("q", agent=agents, protocol="dag")).protocol == "dag"


@pytest.mark.parametrize(("effort", "searches"), [("low", 2), ("medium", 4), ("high", 8)])
def test_effort_is_a_factor_of_every_budget(effort: Effort, searches: int):
    budgets = Budgets(rounds=3, searches=4, passages=10, seconds=8, policy_tokens=300)
    agent = agent_for(make_agent([], budgets=budgets), effort=effort)
    factor = searches / 4
    assert agent.budgets.searches == searches
    assert agent.budgets.rounds == max(1, int(3 * factor))
    assert (agent.budgets.passages, agent.budgets.seconds) == (10 * factor, 8 * factor)
    assert agent.budgets.policy_tokens == 300 * factor
    assert agent.budgets.answer_tokens == min(256, agent.budgets.policy_tokens // 2)


@given(factor=st.floats(0.01, 8), rounds=st.integers(0, 9), tokens=st.integers(1, 9000))
def test_no_factor_holds_back_more_than_half_of_the_tokens_for_the_answer(factor: float, rounds: int, tokens: int):
    before = Budgets(policy_tokens=tokens)
    after = before.times(factor, rounds=rounds)
    assert after.answer_tokens <= max(1, after.policy_tokens // 2)
    assert after.rounds is not None
    assert (after.rounds <= rounds) if factor < 1 else (after.rounds >= rounds)
    assert after.rounds >= min(rounds, 1)


def test_what_was_allowed_at_all_is_allowed_once_under_the_least_effort():
    little = Budgets(rounds=1, searches=1, passages=1, policy_tokens=1).for_effort("low", rounds=4)
    assert (little.rounds, little.searches, little.passages, little.policy_tokens) == (1, 1, 1, 1)
    none = Budgets(rounds=0, searches=0, passages=0).for_effort("low", rounds=4)
    assert (none.rounds, none.searches, none.passages) == (0, 0, 0)


# The tool


def test_the_definition_is_a_function_in_strict_mode():
    definition: Any = tool_definition()
    function = definition["function"]
    assert (definition["type"], function["name"], function["strict"]) == ("function", "search_evidence", True)
    parameters = function["parameters"]
    assert parameters["additionalProperties"] is False
    names = ["question", "max_chars", "sources", "libraries", "effort", "protocol"]
    assert parameters["required"] == list(parameters["properties"]) == names
    assert all("default" not in field for field in parameters["properties"].values())
    json.dumps(definition)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"question": "q", "max_chars": 900}',
        {"question": "q", "max_chars": 900, "sources": ["web", "news"], "effort": "low", "protocol": "cairn"},
        '{"question": "q"}',
        '{"question": "q", "sources": "web"}',
        '{"question": "q", "max_chars": null, "sources": null, "effort": null, "protocol": null}',
    ],
)
def test_a_call_takes_what_a_model_says(arguments: Any):
    bundle = bounded(call_tool(arguments, agent=make_agent([PLAN_TURN, ANSWER_TURN])))
    assert bundle.question == "q"
    assert bundle.size.max_chars == (900 if "900" in str(arguments) else 8000)


def test_the_definition_names_what_is_there():
    agents = {name: make_agent([], protocol=name) for name in ("cairn", "dag")}
    tool: Any = tool_definition(agents)
    for schema in (tool["function"]["parameters"], arguments_schema(agents)):
        fields = schema["properties"]
        assert fields["sources"]["anyOf"][0]["items"]["enum"] == ["web", "news"]
        assert fields["protocol"]["anyOf"][0]["enum"] == ["cairn", "dag"]
    assert arguments_schema(agents)["required"] == ["question"]


@pytest.mark.parametrize(("wanted", "allowed"), [(1, 600), (10**9, 32_000), (None, 8000)])
def test_a_call_gets_no_more_room_than_is_allowed(wanted: int | None, allowed: int):
    agent = make_agent([PLAN_TURN, ANSWER_TURN])
    assert bounded(call_tool({"question": "q", "max_chars": wanted}, agent=agent)).size.max_chars == allowed


@pytest.mark.parametrize(
    "arguments",
    [
        "{",
        "[]",
        '"q"',
        "{}",
        '{"question": 3}',
        '{"question": "q", "colour": "red"}',
        '{"question": "q", "effort": "huge"}',
        "[" * 100_000,
        '{"question": ' + "9" * 5_000 + "}",
    ],
    ids=lambda arguments: arguments[:40],
)
def test_arguments_that_cannot_be_used_are_a_sentence_for_the_model(arguments: str):
    with pytest.raises(QuestionError, match="search_evidence"):
        bounded(call_tool(arguments, agent=make_agent([])))
