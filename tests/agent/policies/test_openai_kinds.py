"""What a server behind an endpoint can do is found out by requests, and used: chats that go on inside a turn, or do not."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent.errors import PolicyError
from agent.loop.agent import Agent
from agent.loop.budgets import Budgets
from agent.outbound.llm import LlmClient
from agent.outbound.retries import Retries
from agent.policies.base import Policy, Sampling
from agent.policies.openai_abilities import Continues
from agent.policies.openai_chat import ChatContext, ChatPolicy
from agent.policies.openai_policy import Kind, OpenAiPolicy
from agent.trace import Trace
from tests.agent.policies.chat_servers import KINDS, MODEL, Spoken, spoken
from tests.agent.policies.conformance import ConformanceOfTurns
from tests.agent.policies.conformance_deaths import ConformanceOfDeaths
from tests.agent.policies.conformance_rollouts import ConformanceOfRollouts
from tests.agent.policies.engine import run
from tests.agent.policies.engine_case import CAIRN, TWO_HOPS, EngineCase, engine_case, sources
from tests.shipped import HUB

GOES_ON = {
    "vllm": True,
    "vllm without a fitting template": False,
    "llama.cpp": True,
    "older llama.cpp": True,
    "ollama": True,
    "ollama with a template that closes": False,
    "mistral": True,
    "openai": False,
}


def policy_at(server: Spoken, *, kind: Kind = "auto", continues: Continues = "auto", retries: int = 0) -> OpenAiPolicy:
    endpoint = LlmClient(base_url=server.url, model=MODEL, seconds=10, retries=Retries(retries))
    return OpenAiPolicy(endpoint, kind=kind, continues=continues, marks=CAIRN.all_marks)


async def rollout(server: Spoken, question: str = TWO_HOPS, *, budgets: Budgets | None = None, **more: Any) -> Trace:
    policy = policy_at(server, **more)
    agent = Agent(policy, CAIRN, sources(), budgets or Budgets())
    try:
        return await agent.run(agent.new_trace(question))
    finally:
        await policy.aclose()


def roles(request: dict[str, Any]) -> list[str]:
    return [message["role"] for message in request["messages"]]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_rollout_goes_on_inside_the_turn_exactly_where_the_server_does(kind: str):
    with spoken(kind) as server:
        trace = run(rollout(server))
        assert trace.answer == "Lurnia"
        assert [s.by for s in trace.segments] == ["prompt", "policy", "environment", "policy", "environment", "policy"]
        last = roles(server.requests[-1])
        assert last == (
            ["system", "user", "assistant"]
            if GOES_ON[kind]
            else ["system", "user", "assistant", "user", "assistant", "user"]
        )
        if GOES_ON[kind]:
            said = "".join(segment.text for segment in trace.segments[1:-1])
            assert server.requests[-1]["messages"][-1]["content"] == said


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_budget_that_ends_is_answered_everywhere(kind: str):
    with spoken(kind) as server:
        trace = run(rollout(server, budgets=Budgets(rounds=1)))
        assert trace.stopped is not None
        assert (trace.stopped.reason, trace.stopped.budget) == ("forced", "rounds")
        assert trace.answer == "Lurnia"
        assert server.requests[-1]["messages"][-1]["role"] == ("assistant" if GOES_ON[kind] else "user")


def test_a_setting_keeps_a_server_that_could_from_going_on():
    with spoken("vllm") as server:
        trace = run(rollout(server, continues="no"))
        assert trace.answer == "Lurnia"
        assert roles(server.requests[-1])[-1] == "user"
        assert all("continue_final_message" not in request for request in server.requests)


def test_a_setting_has_an_unknown_server_go_on_that_does_so_of_itself():
    with spoken("older llama.cpp") as server:
        server.kind = type(server.kind)("someone", server.kind.is_open)
        assert roles_of_last(server, "auto") == "user"
        assert roles_of_last(server, "yes") == "assistant"


def roles_of_last(server: Spoken, continues: Continues) -> str:
    assert run(rollout(server, continues=continues)).answer == "Lurnia"
    return roles(server.requests[-1])[-1]


def test_nothing_is_requested_where_the_settings_leave_nothing_open():
    with spoken("openai") as server:
        run(rollout(server, kind="chat", continues="no"))
        assert len(server.requests) == 3, "the three turns of the rollout"


def test_the_server_reports_how_long_a_context_may_be():
    async def scene(server: Spoken) -> int:
        policy = policy_at(server)
        await policy.prepare()
        await policy.aclose()
        return policy.context_tokens

    with spoken("vllm") as server:
        assert run(scene(server)) == 4096


def test_completions_without_ids_are_a_sentence_with_the_fix():
    async def scene(server: Spoken, tokenizer: str) -> None:
        endpoint = LlmClient(base_url=server.url, model=MODEL)
        policy = OpenAiPolicy(endpoint, kind="completions", tokenizer=tokenizer)
        try:
            await policy.prepare()
        finally:
            await policy.aclose()

    with spoken("llama.cpp") as server:
        with pytest.raises(PolicyError, match=r"name the model's folder.* with --tokenizer"):
            run(scene(server, ""))
        with pytest.raises(PolicyError, match=r"gives no token ids through completions.*set endpoint to chat"):
            run(scene(server, str(HUB)))


def test_a_server_that_is_not_there_yet_is_tried_again_the_next_time():
    async def scene(server: Spoken) -> None:
        url, server.url = server.url, "http://127.0.0.1:1/v1"
        policy = policy_at(server)
        agent = Agent(policy, CAIRN, sources())
        trace = await agent.run(agent.new_trace(TWO_HOPS))
        assert trace.stopped is not None
        assert trace.stopped.reason == "engine"
        assert "no server at http://127.0.0.1:1/v1" in trace.stopped.detail
        policy.endpoint = LlmClient(base_url=url, model=MODEL)
        assert (await agent.run(agent.new_trace(TWO_HOPS))).answer == "Lurnia"
        await policy.aclose()

    with spoken("vllm") as server:
        run(scene(server))


def test_a_turn_that_may_have_begun_is_never_requested_twice():
    async def scene(server: Spoken) -> None:
        policy = policy_at(server, kind="chat", continues="no", retries=5)
        server.dies = True
        context = policy.open(CAIRN, TWO_HOPS)
        assert isinstance(context, ChatContext)
        with pytest.raises(PolicyError, match="broke off in the middle"):
            async for _ in context.generate(Sampling(), stop=(), max_tokens=99):
                pass
        assert len(server.requests) == 1
        await policy.aclose()

    with spoken("openai") as server:
        run(scene(server))


class _Chat(ConformanceOfDeaths, ConformanceOfTurns, ConformanceOfRollouts):
    kind = ""

    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> Generator[EngineCase]:
        @asynccontextmanager
        async def dying() -> AsyncGenerator[Policy]:
            with spoken(cls.kind) as other:
                other.dies = True
                policy = _chosen(other)
                yield policy
                await policy.aclose()

        with spoken(cls.kind) as server:
            server.knows_stops = False
            yield from engine_case(lambda: _chosen(server), dying=dying, exact=False, samples=False)


def _chosen(server: Spoken) -> ChatPolicy:
    """What an endpoint turned out to be; found out in a thread, for there may be an event loop here."""

    async def ask() -> ChatPolicy:
        policy = policy_at(server)
        await policy.prepare()
        await policy.aclose()
        assert isinstance(policy.chosen, ChatPolicy)
        return policy.chosen

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(asyncio.run, ask()).result()
    again = LlmClient(base_url=server.url, model=MODEL, seconds=10, retries=Retries(0))
    return ChatPolicy(again, context_tokens=found.context_tokens, continuation=found.continuation)


class TestChatThatGoesOn(_Chat):
    kind = "vllm"


class TestChatInTurns(_Chat):
    kind = "openai"
