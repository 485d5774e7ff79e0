"""A real vLLM server on a CPU with the shipped checkpoint: token ids through completions, found out by requests."""

import asyncio
import re
from collections.abc import Generator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.errors import ContextFull, PolicyError
from agent.outbound.llm import LlmClient
from agent.policies.base import Sampling
from agent.policies.hub_form import open_hub_form
from agent.policies.openai_chat import ChatPolicy
from agent.policies.openai_completions import CompletionsPolicy
from agent.policies.openai_policy import OpenAiPolicy
from tests.agent.policies.conformance import LONG, ConformanceOfTurns
from tests.agent.policies.conformance_deaths import ConformanceOfDeaths
from tests.agent.policies.conformance_rollouts import ConformanceOfRollouts
from tests.agent.policies.engine_case import CAIRN, ONE_HOP, EngineCase, engine_case, turn
from tests.agent.policies.vllm_case import (
    MARKS,
    MODEL,
    at,
    completing,
    cut_off,
    embedded,
    rollouts,
    same,
    vllm_server,
)
from tests.shipped import HUB

pytestmark = MARKS

TEMPLATE = "{%% for m in messages %%}{%% if m.role == 'user' %%}%s{%% elif m.role == 'assistant' %%}{{ m.content }}{%% endif %%}{%% endfor %%}"
"""A chat that reads as the protocol's own prompt, and the policy's turn behind it."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    template = tmp_path_factory.mktemp("chat") / "chat.jinja"
    prompt = CAIRN.prompt_text("QUESTION").replace("QUESTION", "{{ m.content }}").removesuffix("\n") + "{{ '\\n' }}"
    template.write_text(TEMPLATE % prompt, encoding="utf-8")
    with vllm_server(arguments=["--chat-template", str(template)]) as url:
        yield url


def running(address: str) -> float:
    """What the server's own metrics say."""
    said = httpx2.get(f"{address.removesuffix('/v1')}/metrics").text
    found = re.findall(r"^vllm:num_requests_(?:running|waiting)\{[^}]*\} ([0-9.]+)$", said, re.MULTILINE)
    assert len(found) >= 2
    return sum(map(float, found))


class TestVllmServer(ConformanceOfDeaths, ConformanceOfTurns, ConformanceOfRollouts):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, address: str) -> Generator[EngineCase]:
        yield from engine_case(lambda: completing(address), dying=lambda: cut_off(address), seconds=240)

    def test_greedy_decoding_is_that_of_the_embedded_engine_in_float32(self, case: EngineCase, tmp_path: Path):
        other = embedded(tmp_path)
        same(case.run(rollouts(case.policy)), case.run(rollouts(other)))
        case.run(other.aclose())

    def test_a_turn_that_is_given_up_is_aborted_at_the_server(self, case: EngineCase, address: str):
        async def scene():
            async with aclosing(case.open().generate(Sampling(), stop=[], max_tokens=LONG)) as chunks:
                await anext(chunks)
            while await asyncio.to_thread(running, address):
                pass  # it is tried again; a slot that is never freed is a timeout

        case.run(scene())

    def test_the_server_itself_stops_at_a_text_of_several_tokens(self, case: EngineCase):
        async def scene():
            policy = case.policy
            assert isinstance(policy, CompletionsPolicy)
            free = await turn(case.open(), stop=["</search>"], max_tokens=LONG)
            stop = free.text[20:29]
            prompt = case.open().segments[0].ids or ()
            batches = policy.sample_until(prompt, Sampling(), ends=frozenset(), stop=[stop], max_tokens=LONG)
            sampled = [number for batch in [batch async for batch in batches] for number, _ in batch]
            kept = await turn(case.open(), stop=[stop], max_tokens=LONG)
            assert tuple(sampled) == kept.ids, "nothing was sampled in vain"

        case.run(scene())


def test_a_server_that_gives_ids_is_found_out_and_used_for_them(address: str):
    async def scene():
        policy = at(address)
        assert policy.instructed, "before the first request it is taken to be a chat"
        await policy.prepare()
        assert isinstance(policy.chosen, CompletionsPolicy)
        assert (policy.continues, policy.instructed, policy.context_tokens) == (True, False, 3072)
        await policy.aclose()

    asyncio.run(scene())


def test_a_chat_of_the_server_goes_on_inside_the_turn_and_says_the_same_as_its_ids(address: str):
    async def scene():
        chat, ids = at(address, kind="chat"), at(address)
        await chat.prepare()
        await ids.prepare()
        assert isinstance(chat.chosen, ChatPolicy)
        assert (chat.continues, chat.instructed) == (True, True)
        for one, other in zip(await rollouts(chat, questions=6), await rollouts(ids, questions=6), strict=True):
            assert one.answer == other.answer
            assert [s.text.strip() for s in one.segments[1:]] == [s.text.strip() for s in other.segments[1:]]
        await chat.aclose()
        await ids.aclose()

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("more", "fix"),
    [
        ({"tokenizer": "/nowhere"}, "the tokenizer cannot be used: .*there is no folder /nowhere"),
        ({"tokenizer": "/nowhere", "kind": "completions"}, "the tokenizer cannot be used"),
    ],
)
def test_a_tokenizer_that_is_not_there_is_a_sentence(address: str, more: dict[str, Any], fix: str):
    async def scene():
        policy = at(address, **more)
        with pytest.raises(PolicyError, match=fix):
            await policy.prepare()
        await policy.aclose()

    asyncio.run(scene())


def test_a_model_that_the_server_does_not_have_is_a_sentence(address: str):
    async def scene():
        policy = OpenAiPolicy(LlmClient(base_url=address, model="missing"), tokenizer=str(HUB), kind="completions")
        with pytest.raises(PolicyError, match="missing"):
            await policy.prepare()
        await policy.aclose()

    asyncio.run(scene())


def test_a_prompt_too_long_for_the_server_is_a_full_context(address: str):
    async def scene():
        codec = open_hub_form(str(HUB)).codec
        policy = CompletionsPolicy(LlmClient(base_url=address, model=MODEL), codec, context_tokens=9999)
        with pytest.raises(ContextFull, match="longer than tiny takes"):
            await turn(policy.open(CAIRN, f"{'Read this. ' * 900}{ONE_HOP}"))
        await policy.aclose()

    asyncio.run(scene())
