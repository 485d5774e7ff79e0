"""Engines in float32 from one checkpoint say the same: whole rollouts of the test world, id by id."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from agent.loop.agent import Agent
from agent.policies.base import Policy
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.transformers import TransformersPolicy
from agent.trace import Trace
from agent.world import load_world
from tests.agent.policies.engine_case import CAIRN, sources
from tests.shipped import HUB

pytestmark = pytest.mark.train

QUESTIONS = 4


def rollouts(load: Callable[[], Policy]) -> Sequence[Trace]:
    """The first questions of the test, all at once."""
    questions = load_world("test-v2").questions[:QUESTIONS]
    policy = load()
    agent = Agent(policy, CAIRN, sources())

    async def run() -> Sequence[Trace]:
        try:
            async with asyncio.timeout(110):
                return await asyncio.gather(*(agent.run(agent.new_trace(question.question)) for question in questions))
        finally:
            await policy.aclose()

    return asyncio.run(run())


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Trace]:
    from train.checkpoints.export import export_checkpoint

    folder = tmp_path_factory.mktemp("float32")
    export_checkpoint(HUB, folder, "float32")
    return rollouts(lambda: EmbeddedPolicy.load(folder, compute_type="float32"))


def agree(ours: Sequence[Trace], theirs: Sequence[Trace]) -> None:
    """Same ids in every segment; log-probabilities as near as DESIGN asks of batches."""
    for one, other in zip(ours, theirs, strict=True):
        assert [(s.by, s.ids) for s in one.segments] == [(s.by, s.ids) for s in other.segments], one.question
        for mine, yours in zip(one.segments, other.segments, strict=True):
            assert mine.logprobs == (yours.logprobs and pytest.approx(yours.logprobs, abs=1e-3))


@pytest.mark.slow
def test_embedded_and_transformers_say_the_same(embedded: Sequence[Trace]):
    assert sum(trace.usage.rounds for trace in embedded) > QUESTIONS
    agree(embedded, rollouts(lambda: TransformersPolicy.load(str(HUB), device="cpu", dtype="float32")))


def test_they_would_be_distinguished(embedded: Sequence[Trace]):
    """One id less, or one log-probability beside the right one, is seen."""
    first, *others = embedded
    last = first.segments[-1]
    assert last.ids is not None
    assert last.logprobs is not None
    for change in ({"ids": last.ids[:-1]}, {"logprobs": (*last.logprobs[:-1], last.logprobs[-1] - 0.01)}):
        changed = first.model_copy(update={"segments": [*first.segments[:-1], last.model_copy(update=change)]})
        with pytest.raises(AssertionError):
            agree([changed, *others], embedded)
