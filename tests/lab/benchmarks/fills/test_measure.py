"""The benchmark of fills: both ways answer, and one round with fills takes fewer of the policy's tokens."""

import asyncio

import pytest

from agent.build.shipped import newest_checkpoint
from agent.policies.checkpoint import open_checkpoint
from agent.policies.embedded import EmbeddedPolicy
from agent.protocols import protocol_named
from agent.world import load_world
from lab.benchmarks.fills.measure import FillsWay, OraclePace, chains, measure
from lab.benchmarks.fills.policies import script
from train.sft.episodes import episode

AT_ONCE = OraclePace(0.0, 0.0)


def ways(*, embedded: bool = False) -> dict[bool, FillsWay]:
    async def main() -> list[FillsWay]:
        folder = newest_checkpoint()
        policy = EmbeddedPolicy.load(folder) if embedded else None
        try:
            async with asyncio.timeout(60):
                codec = open_checkpoint(folder).codec
                return await measure(
                    load_world("test-v2"), codec=codec, pace=AT_ONCE, policy=policy, hops=(2,), limit=5
                )
        finally:
            if policy is not None:
                await policy.aclose()

    return {way.fills: way for way in asyncio.run(main())}


def test_the_oracle_s_script_answers_as_well_in_one_round_with_fills_as_in_two_with_fewer_tokens():
    found = ways()
    assert found[True].em >= found[False].em >= 0.8
    assert found[True].rounds < found[False].rounds - 0.5
    assert found[True].policy_tokens < found[False].policy_tokens
    assert found[True].context_tokens < found[False].context_tokens


@pytest.mark.slow
def test_a_model_goes_on_after_a_given_first_turn():
    found = ways(embedded=True)
    assert found[True].n == found[False].n == 5
    assert found[True].searches >= 1


def test_the_script_knows_every_turn_of_an_episode_by_what_stands_before_it():
    world, protocol = load_world("test-v2"), protocol_named("cairn")
    codec = open_checkpoint(newest_checkpoint()).codec
    question = next(chains(world, protocol, hops=[2]))
    expert = episode(world, question, protocol, fill=True)
    said = script(expert, codec)
    assert len(said) == sum(piece.by == "policy" for piece in expert.pieces) + len(expert.forks)
    assert any(text.endswith("</fill>") for text in said.values())
    assert script(None, codec) == {}


@pytest.mark.parametrize("hops", [2, 3])
def test_chains_have_as_many_rounds_as_hops(hops: int):
    world, protocol = load_world("test-v2"), protocol_named("cairn")
    assert all(len(question.plan) == hops for question in chains(world, protocol, hops=[hops]))
