"""Real rollouts of the shipped checkpoint over the little world, made once for all tests that read them."""

import asyncio
from collections.abc import Sequence
from functools import cache

from agent.build.agent import build_agent
from agent.settings import CairnSettings
from agent.sources.questions import GoldQuestion
from agent.trace import Trace
from agent.world import load_world
from train.evaluation.questions import world_questions

WORLD = "dev-v2"
COPIED = ("chain1", "chain2", "chain3", "comparison", "intersection", "choice")
"""Types of questions whose answer is a name that is found."""


@cache
def questions() -> tuple[GoldQuestion, ...]:
    copied = [question for question in load_world(WORLD).questions if question.type in COPIED]
    return tuple(world_questions(copied)[:10])


@cache
def rollouts() -> tuple[Trace, ...]:
    """One of each question."""

    async def run() -> Sequence[Trace]:
        agent = build_agent(CairnSettings(world=WORLD, protocol="cairn"))
        try:
            runs = (agent.run(agent.new_trace(question.question)) for question in questions())
            return await asyncio.gather(*runs)
        finally:
            await agent.aclose()

    return tuple(asyncio.run(run()))
