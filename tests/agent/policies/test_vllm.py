"""Real vLLM in this process, on a CPU, with the shipped checkpoint."""

import asyncio
from collections.abc import Generator
from contextlib import aclosing
from pathlib import Path

import pytest

from agent.errors import PolicyError, SetupError
from agent.policies.base import Sampling
from agent.policies.vllm import VllmPolicy
from tests.agent.policies.conformance import LONG, ConformanceOfTurns
from tests.agent.policies.conformance_deaths import ConformanceOfDeaths
from tests.agent.policies.conformance_fills import ConformanceOfFills
from tests.agent.policies.conformance_rollouts import ConformanceOfRollouts
from tests.agent.policies.engine_case import FOUND, ONE_HOP, EngineCase, engine_case, turn
from tests.agent.policies.vllm_case import MARKS, embedded, killed_in_the_middle, load, rollouts, same

pytestmark = MARKS


class _Vllm(ConformanceOfTurns, ConformanceOfRollouts, ConformanceOfFills):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> Generator[EngineCase]:
        """Its engine is killed and closed at the end, after all other tests: starts are what takes long."""
        policy = load()
        yield from engine_case(
            lambda: policy, dying=lambda: killed_in_the_middle(policy), busy=lambda policy: policy.busy, seconds=240
        )

    def policy(self, case: EngineCase) -> VllmPolicy:
        assert isinstance(case.policy, VllmPolicy)
        return case.policy

    def test_a_round_reads_only_what_is_new(self, case: EngineCase):
        async def scene():
            policy = self.policy(case)
            context = case.open(f"{'Read this. ' * 60}{ONE_HOP}")
            await turn(context, stop=["</search>"], max_tokens=LONG)
            context.append(FOUND, by="environment")
            before, tokens = policy.use, context.tokens
            await turn(context, max_tokens=5)
            read = policy.use.prompt_tokens - before.prompt_tokens
            cached = policy.use.cached_tokens - before.cached_tokens
            assert read == tokens
            assert cached > tokens - 256, "all but the last blocks were read before"

        case.run(scene())

    def test_a_turn_that_is_given_up_leaves_vllms_scheduler(self, case: EngineCase):
        async def scene():
            policy = self.policy(case)
            for _ in range(3):
                async with aclosing(case.open().generate(Sampling(), stop=[], max_tokens=LONG)) as chunks:
                    await anext(chunks)
            async with aclosing(case.open().generate(Sampling(), stop=[], max_tokens=40)) as chunks:
                running = [policy.use.running async for _ in chunks]
            assert max(running[2:]) == 1, "the three that were given up run no more"
            assert policy.use.waiting == 0

        case.run(scene())

    def test_any_number_of_event_loops_may_ask(self, case: EngineCase):
        first = case.run(turn(case.open(), max_tokens=20))
        assert asyncio.run(turn(case.open(), max_tokens=20)).ids == first.ids

    def test_greedy_decoding_is_that_of_the_embedded_engine_in_float32(self, case: EngineCase, tmp_path: Path):
        other = embedded(tmp_path)
        same(case.run(rollouts(self.policy(case))), case.run(rollouts(other)))
        case.run(other.aclose())


class TestVllm(ConformanceOfDeaths, _Vllm):
    """What ends the engine comes last."""

    def test_a_policy_that_was_closed_says_so(self, case: EngineCase):
        context = case.open()

        async def scene():
            await case.policy.aclose()
            await case.policy.aclose()
            with pytest.raises(PolicyError, match="was closed"):
                await turn(context)

        case.run(scene())


def test_what_vllm_cannot_run_is_a_sentence_with_the_fix():
    with pytest.raises(SetupError, match="takes 3072 tokens, and max_model_len is 4096"):
        load(max_model_len=4096)
    with pytest.raises(SetupError, match=r"vLLM cannot start .*hub: .*docs/engines\.md"):
        load(kv_cache_memory_bytes=1)
