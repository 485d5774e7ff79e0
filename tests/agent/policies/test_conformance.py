"""The engines that need no extra, through what every engine must show."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import pytest

from agent.errors import PolicyError
from agent.policies.base import Policy
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.scripted import ScriptedPolicy
from tests.agent.policies.conformance import ConformanceOfTurns
from tests.agent.policies.conformance_deaths import ConformanceOfDeaths
from tests.agent.policies.conformance_fills import ConformanceOfFills
from tests.agent.policies.conformance_rollouts import ConformanceOfRollouts
from tests.agent.policies.engine_case import EngineCase, engine_case, say
from tests.shipped import CT2


class TestScripted(ConformanceOfDeaths, ConformanceOfTurns, ConformanceOfRollouts, ConformanceOfFills):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> Generator[EngineCase]:
        yield from engine_case(lambda: ScriptedPolicy(say, context_tokens=4096), dying=_gone, samples=False)


@asynccontextmanager
async def _gone() -> AsyncGenerator[Policy]:
    yield ScriptedPolicy([PolicyError("the engine is gone")] * 9)


class TestEmbedded(ConformanceOfDeaths, ConformanceOfTurns, ConformanceOfRollouts, ConformanceOfFills):
    """In int8, as it is shipped; the checkpoint is the one that all engines are held to.

    The suite's questions leave it no two tokens that are nearly tied. With `tiny-v2` one turn differed in company: two
    tokens were 0.013 apart there, and 8 bits round by more. See `test_embedded` for what holds of any checkpoint.
    """

    @pytest.fixture(scope="class")
    @classmethod
    def case(cls) -> Generator[EngineCase]:
        def load() -> EmbeddedPolicy:
            return EmbeddedPolicy.load(CT2, workers=2)

        # How 8-bit products are rounded depends on who shares the batch; ids stay the same.
        yield from engine_case(load, tolerance=0.1, busy=lambda policy: policy.busy)
