"""A general model behind an endpoint ends with an answer or a sentence, whatever its server sends."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from agent.evidence import Passage
from agent.loop.agent import Agent, Budgets
from agent.outbound.llm import LlmClient
from agent.outbound.retries import Retries
from agent.plan import parse_plan
from agent.policies.ladder.moves import queries_of
from agent.policies.openai_policy import OpenAiPolicy
from agent.protocols import protocol_named
from agent.sources.base import SearchRequest, SearchResult
from agent.trace import Evidenced, Planned, Searched, Trace
from tests.agent.policies.chat_server import ChatServer, Refusal, Reply, chat_server

QUESTION = "Where was the director of the film Silver Tide born?"
FILM = Passage(id="1", source="all", title="Silver Tide", text="Silver Tide is a film that was directed by Ada Moss.")
PERSON = Passage(id="2", source="all", title="Ada Moss", text="Ada Moss (born 1931 in Bergen) is a film director.")


class TwoPassages:
    """Two passages, found by a word of their titles."""

    async def search(self, request: SearchRequest) -> SearchResult:
        found = tuple(p for p in (FILM, PERSON) if p.title.split()[-1].casefold() in request.query.casefold())
        return SearchResult(found[: request.limit])


def call(name: str, **arguments: Any) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Reply([{"tool_calls": [{"index": 0, "id": "c", "function": function}]}], finish="tool_calls")  # type: ignore[list-item]


def said(text: str, **more: Any) -> Reply:
    return Reply([text], **more)


def search_json(*queries: str) -> Reply:
    return said(json.dumps({"action": "search", "queries": queries, "answer": "", "evidence": []}))


async def rollout_at(
    server: ChatServer, *, rung: Any = "auto", protocol: str = "cairn", budgets: Budgets | None = None
) -> Trace:
    policy = OpenAiPolicy(
        LlmClient(base_url=server.url, model="m", retries=Retries(0)), kind="chat", continues="no", rung=rung
    )
    agent = Agent(policy, protocol_named(protocol), {"all": TwoPassages()}, budgets or Budgets())
    try:
        return await agent.run(agent.new_trace(QUESTION))
    finally:
        await policy.aclose()


async def _rollout(*replies: Reply | Refusal, **more: Any) -> tuple[Trace, ChatServer]:
    async with chat_server(*replies) as server:
        return await rollout_at(server, **more), server


def rollout(*replies: Reply | Refusal, **more: Any) -> tuple[Trace, ChatServer]:
    return asyncio.run(_rollout(*replies, **more))


def kinds(trace: Trace) -> list[str]:
    return [step.kind for step in trace.steps]


EXAM_BY_TOOLS = (
    call("search", queries=["director of Aurora Falls"]),
    call("search", queries=["Lina Orr birthplace"]),
    call("answer", text="Trieste", evidence=[]),
)
ANSWERED_BY_TOOLS = (
    call("search", queries=["director of Silver Tide"]),
    call("search", queries=["Ada Moss birthplace"]),
    call("answer", text="Bergen", evidence=[{"claim": "Ada Moss was born in 1931 in Bergen.", "passages": [2]}]),
)


def test_a_model_that_passes_its_exam_by_tools_searches_by_them():
    trace, server = rollout(*EXAM_BY_TOOLS, *ANSWERED_BY_TOOLS)
    assert trace.answer == "Bergen"
    assert [(r.rung, r.why) for r in trace.rungs] == [("tools", "the model passed its exam")]
    assert [s.query for s in trace.steps if isinstance(s, Searched)] == [
        "director of Silver Tide",
        "Ada Moss birthplace",
    ]
    (claim,) = trace.claims
    assert (claim.cites, claim.check) == ((2,), "close")
    assert [tool["function"]["name"] for tool in server.requests[-1]["tools"]] == ["search", "answer"]
    assert [m["role"] for m in server.requests[-1]["messages"]] == ["system", "user"] + ["assistant", "tool"] * 2


def test_a_model_that_fails_every_exam_gets_the_floor_and_the_trace_says_why():
    trace, server = rollout(said("I like films."), said("I like films."), said("No."), said("The answer is Molde [2]."))
    assert trace.answer == "Molde"
    (rung,) = trace.rungs
    assert rung.rung == "plain"
    assert rung.why.startswith("tools: it wrote neither a search nor an answer; json: ")
    planned = next(step for step in trace.steps if isinstance(step, Planned))
    assert [node.query for node in planned.plan.nodes] == [QUESTION.rstrip("?") + "?", "Silver Tide"]
    assert [segment.by for segment in trace.segments] == ["prompt", "loop", "environment", "policy"]
    assert len(server.requests) == 4


def test_an_answer_that_no_passage_holds_has_no_evidence():
    trace, _ = rollout(said("Paris"), rung="plain")
    assert (trace.answer, trace.claims) == ("Paris", ())
    assert not any(isinstance(step, Evidenced) for step in trace.steps)


def test_a_short_answer_is_quoted_from_its_passage():
    trace, _ = rollout(said("Ada Moss."), rung="plain")
    assert trace.answer == "Ada Moss"
    (claim,) = trace.claims
    assert (claim.text, claim.cites, claim.check) == (FILM.text, (1,), "verbatim")


@pytest.mark.parametrize(
    "first",
    [
        said('<tool_call>{"name": "search", "arguments": {"queries": ["Silver Tide"],}}</tool_call>'),
        said('Sure!\n```json\n{"action": "search", "queries": ["Silver Tide",], }\n```'),
        said("Action: search[Silver Tide]"),
        said("<think>hm {</think><search>\nSilver Tide\n</search>"),
        call("search", query="Silver Tide"),
    ],
    ids=["call as text", "trailing commas", "action", "tags", "one query"],
)
@pytest.mark.parametrize("rung", ["tools", "json", "words"])
def test_a_search_is_read_however_it_was_written(first: Reply, rung: str):
    trace, _ = rollout(first, call("answer", text="Bergen", evidence=[]), rung=rung)
    assert trace.answer == "Bergen"
    assert [r.rung for r in trace.rungs] == [rung]
    assert [s.query for s in trace.steps if isinstance(s, Searched)] == ["Silver Tide"]


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (said("Bergen, I believe. <answer>Bergen</answer>"), "it answered without searching"),
        (said("It is a nice film."), "it wrote neither a search nor an answer"),
        (Reply([{"reasoning_content": "I should search"}]), "it reasoned and said nothing"),
        (said(""), "it said nothing"),
        (Reply([{"refusal": "I can't help with that."}]), "it refused"),
        (said('{"action": "search", "quer', dies=True), "its turn broke off"),
    ],
    ids=["no search", "neither", "reasons", "nothing", "refuses", "breaks off"],
)
@pytest.mark.parametrize("rung", ["tools", "json"])
def test_what_is_no_move_leads_to_the_floor_where_it_is_answered(first: Reply, why: str, rung: str):
    trace, _ = rollout(first, said("Bergen"), rung=rung)
    assert trace.answer == "Bergen"
    assert [(r.rung, r.why) for r in trace.rungs[1:]] == [("plain", f"on {rung}, {why}")]
    assert "searched" in kinds(trace)


def test_words_are_repaired_once():
    trace, server = rollout(
        said("Hm."), said("<search>Silver Tide</search>"), said("<answer>Bergen</answer>"), rung="words"
    )
    assert (trace.answer, [r.rung for r in trace.rungs]) == ("Bergen", ["words"])
    assert "it wrote neither a search nor an answer" in server.requests[1]["messages"][-1]["content"]


def test_a_search_that_is_repeated_leads_to_the_floor():
    again = search_json("Silver Tide")
    trace, _ = rollout(again, again, said("Bergen"), rung="json")
    assert trace.answer == "Bergen"
    assert trace.rungs[-1].why == "on json, it searched for the same again"


@pytest.mark.parametrize("reply", [said(""), Reply([{"reasoning": "…"}]), Reply([{"refusal": "no"}])])
def test_a_model_that_never_says_anything_ends_with_a_sentence(reply: Reply):
    trace, _ = rollout(reply, rung="plain")
    assert trace.answer is None
    assert trace.stopped is not None
    assert trace.stopped.reason == "engine"
    assert "m gave no answer: it" in trace.stopped.detail


def test_a_server_that_refuses_tools_is_prompted_without_them():
    no_tools = Refusal(400, {"message": '"auto" tool choice requires --enable-auto-tool-choice', "param": "tools"})
    trace, _ = rollout(no_tools, said("no"), said("no"), said("no"), said("Bergen"))
    assert trace.answer == "Bergen"
    assert trace.rungs[0].rung == "plain"


@pytest.mark.parametrize("rung", ["tools", "json", "words", "plain"])
def test_where_no_search_is_allowed_the_model_answers_from_memory(rung: str):
    trace, server = rollout(search_json("x"), said("<answer>Bergen</answer>"), rung=rung, budgets=Budgets(rounds=0))
    assert trace.answer is not None
    assert "searched" not in kinds(trace)
    assert len(server.requests) <= 3


@pytest.mark.parametrize("protocol", ["cairn", "multisearch", "dag", "evidence", "reflect", "kg"])
@pytest.mark.parametrize("rung", ["json", "plain"])
def test_every_protocol_of_our_own_is_spoken_for_the_model(protocol: str, rung: str):
    replies = [search_json("Silver Tide", "Ada Moss"), said('{"action": "answer", "answer": "Bergen"}')]
    trace, _ = rollout(*(replies if rung == "json" else [said("Bergen")]), rung=rung, protocol=protocol)
    assert (trace.answer, trace.stopped and trace.stopped.reason) == ("Bergen", "answered")
    assert "plan_rejected" not in kinds(trace)


def test_an_answer_cannot_write_the_protocols_own_marks():
    trace, _ = rollout(said("</answer><search>x</search> Bergen"), rung="plain")
    assert trace.answer == "x  Bergen"
    assert kinds(trace).count("searched") == 2


def test_an_answer_that_a_model_copied_from_the_example_is_requested_once_more_without_it():
    question = "Who directed the film Silver Tide?"

    async def scene() -> tuple[Trace, ChatServer]:
        async with chat_server(said("Bergen"), said("Ada Moss")) as server:
            endpoint = LlmClient(base_url=server.url, model="m", retries=Retries(0))
            policy = OpenAiPolicy(endpoint, kind="chat", continues="no", rung="plain")
            agent = Agent(policy, protocol_named("cairn"), {"all": OnlyFilm()}, Budgets())
            trace = await agent.run(agent.new_trace(question))
            await policy.aclose()
            return trace, server

    trace, server = asyncio.run(scene())
    assert trace.answer == "Ada Moss"
    first, second = ([message["content"] for message in request["messages"]] for request in server.requests)
    assert len(first) == len(second) + 2
    assert not any("Bergen" in content for content in second)


class OnlyFilm:
    """One passage, whatever is searched."""

    async def search(self, request: SearchRequest) -> SearchResult:
        return SearchResult((FILM,))


def reasoning(reply: Reply | None, *, tokens: int) -> Reply:
    """A turn that reasons first: whole, or cut before the model speaks."""
    thought = {"reasoning_content": "hm " * 20}
    if reply is None:
        return Reply([thought], finish="length", completion_tokens=tokens)
    return replace(reply, says=[thought, *reply.says], completion_tokens=tokens)


def test_a_model_that_reasons_before_it_speaks_has_room_for_that():
    exam = (reasoning(None, tokens=200), *(reasoning(turn, tokens=800) for turn in EXAM_BY_TOOLS))
    trace, server = rollout(*exam, *(reasoning(turn, tokens=800) for turn in ANSWERED_BY_TOOLS))
    assert trace.answer == "Bergen"
    assert [request["max_tokens"] for request in server.requests] == [200, 3896, 4096, 4096, 3840, 3040, 2240]
    assert trace.usage.policy_tokens == 2400


@pytest.mark.parametrize("thought", [{"reasoning_content": "hm"}, "<think>hm"])
def test_one_that_is_seen_to_reason_only_while_it_answers_gets_another_turn(thought: Any):
    cut = Reply([thought], finish="length", completion_tokens=48)
    trace, server = rollout(cut, reasoning(said("Molde"), tokens=700), rung="plain")
    assert trace.answer == "Molde"
    assert [request["max_tokens"] for request in server.requests] == [48, 3792]
    assert trace.usage.policy_tokens == 748


def test_that_a_model_reasons_is_remembered_with_its_exam():
    async def scene() -> list[int]:
        exam = (reasoning(None, tokens=200), *(reasoning(turn, tokens=800) for turn in EXAM_BY_TOOLS))
        async with chat_server(*exam, *ANSWERED_BY_TOOLS * 2) as server:
            for _ in range(2):
                await rollout_at(server)
            return [request["max_tokens"] for request in server.requests[-3:]]

    assert min(asyncio.run(scene())) > 1000


def test_instructions_and_earlier_turns_count_and_the_oldest_are_left_out_where_they_do_not_fit():
    async def scene(turns: int) -> tuple[Trace, list[dict[str, Any]]]:
        async with chat_server(*ANSWERED_BY_TOOLS) as server:
            policy = OpenAiPolicy(
                LlmClient(base_url=server.url, model="m", retries=Retries(0)), kind="chat", rung="tools"
            )
            agent = Agent(policy, protocol_named("cairn"), {"all": TwoPassages()}, Budgets())
            history = [(f"Question {n}?", f"Answer {n}. " * 200) for n in range(turns)]
            trace = await agent.run(agent.new_trace(QUESTION, history=history))
            await policy.aclose()
            return trace, [request for request in server.requests if "tools" in request]

    bare, _ = asyncio.run(scene(0))
    assert bare.usage.prompt_tokens > 300, "with instructions and tools"
    trace, requests = asyncio.run(scene(12))
    assert trace.answer == "Bergen"
    sent = [message["content"] for message in requests[0]["messages"] if message["role"] == "user"]
    assert "Question 11?" in sent
    assert "Question 0?" not in sent
    assert all(len(json.dumps(request)) < 8192 * 4 for request in requests)


def test_a_policy_that_was_looked_at_before_it_is_prepared_is_spoken_to_on_its_rung_all_the_same():
    async def scene() -> str:
        async with chat_server() as server:
            policy = OpenAiPolicy(
                LlmClient(base_url=server.url, model="m", retries=Retries(0)), kind="chat", continues="no", rung="tools"
            )
            assert policy.instructed  # as a server reads it when it lists its models
            await policy.prepare()
            await policy.aclose()
            return policy.summary

    assert "on the rung tools" in asyncio.run(scene())


def test_the_name_of_a_language_keeps_its_sharp():
    assert queries_of(["C# async await", "F# vs C#", "who is #A?", "see #1 (web)"], most=4) == (
        "C# async await",
        "F# vs C#",
        "who is A?",
        "see 1 web",
    )
    plan = parse_plan("A: C# async await (web)\nB: F# vs C#", protocol=protocol_named("cairn"), sources={"web", "all"})
    assert [node.query for node in plan.nodes] == ["C# async await", "F# vs C#"]


def test_a_protocol_without_a_mark_for_what_is_found_can_be_spoken():
    protocol = protocol_named("multisearch")
    bare = protocol.model_copy(
        update={"tags": {role: tag for role, tag in protocol.tags.items() if role != "information"}}
    )

    async def scene() -> Trace:
        async with chat_server(*ANSWERED_BY_TOOLS) as server:
            policy = OpenAiPolicy(
                LlmClient(base_url=server.url, model="m", retries=Retries(0)), kind="chat", rung="tools"
            )
            agent = Agent(policy, bare, {"all": TwoPassages()}, Budgets())
            trace = await agent.run(agent.new_trace(QUESTION))
            await policy.aclose()
            return trace

    assert asyncio.run(scene()).answer == "Bergen"
